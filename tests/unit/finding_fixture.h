/* SPDX-License-Identifier: MIT
 * finding_fixture.h - asking a document for its findings: each must be whole, and the document still valid. */
#ifndef FINDING_FIXTURE_H
#define FINDING_FIXTURE_H

#include "analyze/judge/judge.h"
#include "run_fixture.h"

static inline void finding_judge(struct run *r)
{
    tare_error err = TARE_ERROR_INIT;
    r->findings.n = 0;
    if (findings_add(r, &err) < 0) fail_msg("%s", err.text);
    struct buf text = BUF_INIT;
    if (run_write(r, &text, &err) < 0)
        fail_msg("%s", err.text); /* every finding is a valid part of the document */
    buf_release(&text);
    for (size_t i = 0; i < r->findings.n; i++) {
        const struct run_finding *f = r->findings.at[i];
        if (!f->title || !*f->title || !f->action || !*f->action || f->evidence.n == 0)
            fail_msg("%s lacks title, action or evidence", f->id);
    }
}

static inline const struct run_finding *finding_must(const struct run *r, const char *id)
{
    const struct run_finding *f = fixture_finding(r, id);
    if (!f) fail_msg("no finding %s", id);
    return f;
}

static inline void finding_must_not(const struct run *r, const char *id)
{
    const struct run_finding *f = fixture_finding(r, id);
    if (f) fail_msg("%s: %s", id, f->title);
}

static inline double finding_evidence(const struct run_finding *f, const char *key)
{
    const struct run_value *v = run_map_get(&f->evidence, key);
    if (!v) fail_msg("%s has no evidence %s", f->id, key);
    return v->kind == RUN_INT ? (double)v->i : v->d;
}

static inline void finding_has(const char *text, const char *part)
{
    if (!text || !strstr(text, part)) fail_msg("no \"%s\" in \"%s\"", part, text ? text : "(null)");
}

#endif

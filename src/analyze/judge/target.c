/* SPDX-License-Identifier: MIT
 * target.c - reads targets as people write them: `latency.p95 <= 100ms`, `throughput>=1000texts/s`,
 * `accuracy >= 69%`, and the form `latency:100ms`. Strict: the whole text or an error that shows the
 * place. Judging is verdict.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/judge/judge.h"
#include "core/suggest.h"
#include "core/unit.h"

#define TARGET_TEXT_MAX 200

struct target_text {
    const char *text, *at;
    const struct measure *measure;
    tare_error *err;
};

static const char word_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

static tare_status refuse(struct target_text *r, const char *at, const char *why)
{
    if (*at == 0) return error_set(r->err, TARE_INVALID, "%s: at its end: %s", r->text, why);
    return error_set(r->err, TARE_INVALID, "%s: at '%s': %s", r->text, at, why);
}

static void skip_blanks(struct target_text *r)
{
    r->at += strspn(r->at, " \t");
}

/* ---- metric ---- */

static tare_status unknown_metric(struct target_text *r, const char *word)
{
    const char *names[64];
    size_t n = 0;
    for (const struct measure *m = measure_table; m->name && n < 64; m++) names[n++] = m->name;
    const char *near = suggest_among(word, names, n);
    struct buf all = BUF_INIT;
    for (size_t i = 0; i < n; i++) buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
    if (near)
        error_set(r->err, TARE_INVALID, "%s: '%s' is not a metric; did you mean %s?", r->text, word, near);
    else
        error_set(r->err, TARE_INVALID, "%s: '%s' is not a metric; there are: %s", r->text, word, all.data);
    buf_release(&all);
    return TARE_INVALID;
}

static tare_status read_metric(struct target_text *r, struct target *out)
{
    char word[sizeof out->metric];
    skip_blanks(r);
    size_t n = strspn(r->at, word_chars);
    if (n == 0) return refuse(r, r->at, "a metric was expected, as in latency.p95<=100ms");
    if (n >= sizeof word) return refuse(r, r->at, "too long for a metric");
    memcpy(word, r->at, n);
    word[n] = 0;
    r->measure = measure_find(word);
    if (!r->measure) return unknown_metric(r, word);
    snprintf(out->metric, sizeof out->metric, "%s", r->measure->name);
    r->at += n;
    skip_blanks(r);
    return TARE_OK;
}

/* ---- operator ---- */

static tare_status read_op(struct target_text *r, struct target *out)
{
    static const struct {
        const char *text;
        enum target_op op;
    } ops[] = {{"<=", TARGET_LE}, {">=", TARGET_GE},           {"\xE2\x89\xA4", TARGET_LE},
               {"<", TARGET_LT},  {"\xE2\x89\xA5", TARGET_GE}, {">", TARGET_GT}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        size_t n = strlen(ops[i].text);
        if (strncmp(r->at, ops[i].text, n) != 0) continue;
        out->op = ops[i].op;
        r->at += n;
        skip_blanks(r);
        return TARE_OK;
    }
    if (*r->at != ':') return refuse(r, r->at, "expected <=, >=, <, > or :");
    r->at++;
    out->op = r->measure->more_is_better ? TARGET_GE : TARGET_LE;
    skip_blanks(r);
    return TARE_OK;
}

const char *target_op_text(enum target_op op)
{
    static const char *const texts[] = {"<=", ">=", "<", ">"};
    return texts[op];
}

/* ---- value ---- */

static tare_status read_number(struct target_text *r, double *out)
{
    const char *why = unit_number(&r->at, out);
    if (why) return refuse(r, r->at, why);
    skip_blanks(r);
    return TARE_OK;
}

static tare_status read_unit(struct target_text *r, struct target *out)
{
    static const struct {
        enum unit_kind kind;
        bool zero_needs_none; /* 0 is 0 in any unit */
        const char *why_not;
    } rows[] = {
        [MEASURE_TIME] = {UNIT_TIME, true, "not a unit of time; use ns, us, ms or s"},
        [MEASURE_RATE] = {UNIT_RATE, false, "not a rate; use /s, or what is counted: texts/s"},
        [MEASURE_BYTES] = {UNIT_MEMORY, true, "not a unit of memory; use B, KB, KiB, MB, MiB, GB or GiB"},
        [MEASURE_PLAIN] = {UNIT_SHARE, false, "this metric has no unit; a share may be written in %"},
    };
    enum measure_kind kind = r->measure->kind;
    const char *unit = r->at;
    size_t n = strlen(unit);
    while (n > 0 && (unit[n - 1] == ' ' || unit[n - 1] == '\t')) n--;
    if (n >= sizeof out->unit) return refuse(r, r->at, "too long for a unit");
    memcpy(out->unit, unit, n);
    out->unit[n] = 0;
    bool none = n == 0 && out->value == 0 && rows[kind].zero_needs_none;
    if (!none && !unit_apply(rows[kind].kind, out->unit, &out->value))
        return refuse(r, r->at, rows[kind].why_not);
    return isfinite(out->value) ? TARE_OK : refuse(r, r->at, "the value is too large");
}

tare_status target_parse(struct target *out, const char *text, tare_error *err)
{
    struct target_text r = {.text = text, .at = text, .err = err};
    struct target t = {.op = TARGET_LE};
    if (strnlen(text, TARGET_TEXT_MAX + 1) > TARGET_TEXT_MAX)
        return error_set(err, TARE_INVALID, "a target has at most %d characters", TARGET_TEXT_MAX);
    tare_status s = read_metric(&r, &t);
    if (s == TARE_OK) s = read_op(&r, &t);
    if (s == TARE_OK) s = read_number(&r, &t.value);
    if (s == TARE_OK) s = read_unit(&r, &t);
    if (s == TARE_OK) *out = t;
    return s;
}

tare_status target_parse_rate(double *per_second, char unit[24], const char *text, tare_error *err)
{
    struct target_text r = {.text = text, .at = text, .measure = measure_find("throughput"), .err = err};
    struct target t = {.op = TARGET_GE};
    if (strnlen(text, TARGET_TEXT_MAX + 1) > TARGET_TEXT_MAX)
        return error_set(err, TARE_INVALID, "a rate has at most %d characters", TARGET_TEXT_MAX);
    skip_blanks(&r);
    tare_status s = read_number(&r, &t.value);
    if (s == TARE_OK) s = read_unit(&r, &t);
    if (s < 0) return s;
    *per_second = t.value;
    memcpy(unit, t.unit, sizeof t.unit);
    return TARE_OK;
}

/* ---- what a rate counts ---- */

tare_status target_check_unit(const struct target *t, const char *case_unit, tare_error *err)
{
    static const char *const any[] = {"", "samples", "items", "units", "inferences"};
    const struct measure *m = measure_find(t->metric);
    const char *slash = strchr(t->unit, '/');
    if (!m || m->kind != MEASURE_RATE || !slash || !case_unit) return TARE_OK;
    size_t n = (size_t)(slash - t->unit);
    for (size_t i = 0; i < sizeof any / sizeof *any; i++)
        if (strlen(any[i]) == n && strncmp(t->unit, any[i], n) == 0) return TARE_OK;
    if (strncmp(case_unit, t->unit, n) == 0 && (case_unit[n] == 0 || case_unit[n] == '/')) return TARE_OK;
    return error_set(err, TARE_INVALID, "the target %s %s %g%s counts %.*s, but the runs count %s; write /s",
                     t->metric, target_op_text(t->op), t->value, t->unit, (int)n, t->unit, case_unit);
}

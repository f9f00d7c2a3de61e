/* SPDX-License-Identifier: MIT
 * selftest_text.c - a self-test as lines of text, for a cache: each begins with its name, all of them in this order,
 * or it is not ours. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/selftest.h"

#define HEAD "tare.selftest/1"
#define MOST 1e9 /* comparisons, seconds, shares: none is larger */
enum { LINE_BYTES = 512, ALL_BYTES = 1 << 14 };

/* ---- writing ---- */

static void write_kind(const struct selftest_kind *k, struct buf *out)
{
    buf_printf(out, "kind %" PRIu64 " %" PRIu64 " %.9g", k->comparisons, k->alarms, k->unit_s);
    for (int m = 0; m < PAIRED_METRICS; m++) {
        const struct selftest_times *t = &k->by[m];
        buf_printf(out, " %.9g %.9g %.9g %.9g", t->sd_pair, t->sd_launch, t->error_1s, t->detect_s);
    }
    buf_printf(out, " %s\n", k->name);
}

void selftest_write(const struct selftest *s, const char *fingerprint, int64_t now, struct buf *out)
{
    buf_printf(out, HEAD "\nhost %s\nat %" PRId64 "\nmeasured %s\n", fingerprint, now, s->measured);
    buf_printf(out, "all %.9g %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", s->spent_s,
               s->comparisons, s->regressed, s->improved, s->inconclusive, s->contended);
    for (size_t i = 0; i < s->n_kinds; i++) write_kind(&s->kind[i], out);
}

/* ---- reading ---- */

struct lines {
    const char *at, *end;
    char line[LINE_BYTES];
};

/* What follows `name` in the next line; NULL: another line, or none. */
static const char *after(struct lines *l, const char *name)
{
    size_t left = (size_t)(l->end - l->at), n = strlen(name);
    const char *stop = left ? memchr(l->at, '\n', left) : NULL;
    size_t size = stop ? (size_t)(stop - l->at) : 0;
    if (!stop || size < n || size >= sizeof l->line || memcmp(l->at, name, n) != 0) return NULL;
    if (memchr(l->at, 0, size)) return NULL;
    memcpy(l->line, l->at, size);
    l->line[size] = 0;
    l->at = stop + 1;
    return l->line + n;
}

/* The next number of a line, at least 0 or "nan"; NAN where there is none, and then *at is NULL. */
static double number(const char **at)
{
    char *end;
    if (!*at || isspace((unsigned char)**at) || **at == '-') return *at = NULL, NAN;
    double v = strtod(*at, &end);
    bool good = end != *at && (*end == ' ' || *end == 0) && (isnan(v) || (v >= 0 && v <= MOST));
    *at = good ? (*end ? end + 1 : end) : NULL;
    return good ? v : NAN;
}

static uint64_t count(const char **at)
{
    double v = number(at);
    if (*at && (isnan(v) || v != floor(v))) *at = NULL;
    return *at ? (uint64_t)v : 0;
}

static bool read_time(struct selftest *s, int64_t now, struct lines *l)
{
    const char *at = after(l, "at ");
    char *end;
    if (!at || !isdigit((unsigned char)*at)) return false;
    long long then = strtoll(at, &end, 10);
    if (*end || then > now || now - then > (int64_t)SELFTEST_DAYS_MAX * 24 * 3600) return false;
    const char *when = after(l, "measured ");
    if (!when || strlen(when) != strlen("2026-11-15T08:40:00Z") ||
        strspn(when, "0123456789-:TZ") < strlen(when))
        return false;
    snprintf(s->measured, sizeof s->measured, "%.31s", when);
    return true;
}

static bool read_counts(struct selftest *s, struct lines *l)
{
    const char *at = after(l, "all ");
    s->spent_s = number(&at);
    uint64_t *const to[] = {&s->comparisons, &s->regressed, &s->improved, &s->inconclusive, &s->contended};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) *to[i] = count(&at);
    return at && !*at && isfinite(s->spent_s) && s->comparisons > 0 && s->contended <= s->comparisons &&
           s->regressed + s->improved + s->inconclusive <= s->comparisons;
}

static bool read_kind(struct selftest_kind *k, struct lines *l)
{
    const char *at = after(l, "kind ");
    k->comparisons = count(&at);
    k->alarms = count(&at);
    k->unit_s = number(&at);
    for (int m = 0; m < PAIRED_METRICS; m++) {
        double *const to[] = {&k->by[m].sd_pair, &k->by[m].sd_launch, &k->by[m].error_1s, &k->by[m].detect_s};
        for (size_t i = 0; i < sizeof to / sizeof *to; i++) *to[i] = number(&at);
    }
    if (!at || !*at || strlen(at) >= sizeof k->name || !isfinite(k->unit_s) || k->alarms > k->comparisons)
        return false;
    for (const char *c = at; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(" ,.-", *c)) return false;
    snprintf(k->name, sizeof k->name, "%.31s", at);
    return true;
}

bool selftest_read(struct selftest *out, const char *fingerprint, int64_t now, const char *text, size_t n)
{
    struct lines l = {.at = text, .end = text + n};
    struct selftest s = {0};
    if (n > ALL_BYTES) return false;
    const char *head = after(&l, HEAD), *host = head && !*head ? after(&l, "host ") : NULL;
    if (!host || strcmp(host, fingerprint) != 0) return false;
    if (!read_time(&s, now, &l) || !read_counts(&s, &l)) return false;
    while (l.at < l.end) {
        if (s.n_kinds == SELFTEST_KINDS_MAX || !read_kind(&s.kind[s.n_kinds], &l)) return false;
        s.n_kinds++;
    }
    selftest_share(s.regressed + s.improved, s.comparisons, 0.95, &s.rate_lo, &s.rate_hi);
    *out = s;
    return s.n_kinds > 0;
}

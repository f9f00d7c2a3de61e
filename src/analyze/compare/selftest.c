/* SPDX-License-Identifier: MIT
 * selftest.c - see selftest.h. Medians and ninth deciles over comparisons: one that was disturbed does not decide. */
#include "analyze/compare/selftest.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fmt.h"
#include "core/mem.h"

#define LEVEL 0.95
#define HEAD "tare.selftest/1"
#define MOST 1e9 /* comparisons, seconds, shares: none is larger */
enum { LINE_BYTES = 512, ALL_BYTES = 1 << 14 };

/* ---- the rate of false alarms ---- */

/* Clopper and Pearson: the share p at which so few (upper) or so many (lower) hits become unlikely, chance `a`. The
 * tail rises or falls with p all the way, so halving finds it. */
static double solve(uint64_t hits, uint64_t n, double a, bool upper)
{
    double lo = 0, hi = 1;
    for (int i = 0; i < 60; i++) {
        double p = (lo + hi) / 2;
        double tail = upper ? stats_binomial_cdf((double)hits, (double)n, p)
                            : stats_binomial_at_least((double)hits, (double)n, p);
        bool too_small = upper ? tail > a : tail < a; /* p is */
        *(too_small ? &lo : &hi) = p;
    }
    return (lo + hi) / 2;
}

void selftest_share(uint64_t hits, uint64_t n, double level, double *lo, double *hi)
{
    double a = (1 - level) / 2;
    *lo = hits == 0 ? 0 : solve(hits, n, a, false);
    *hi = hits >= n ? 1 : solve(hits, n, a, true);
}

bool selftest_alarming(const struct selftest *s, const struct paired_rule *r)
{
    return s->rate_lo > 2 * r->alpha;
}

/* ---- one kind of work ---- */

struct trials {
    const struct selftest_trial *at;
    size_t n, kind;
    enum paired_metric metric;
    double least_s; /* the shortest comparison: none ends earlier, however precise */
    const struct paired_rule *rule;
};

/* What one comparison says of its kind. A standard error falls with the root of the time spent, so error * sqrt(time)
 * is that after one second; and the time in which the error is small enough to find rule.detect is the time spent times
 * the square of how many times too large it was, but no less than the shortest comparison. */
enum number { SD_PAIR, SD_LAUNCH, ERROR_1S, DETECT_S };

static double number_of(const struct trials *t, const struct selftest_trial *one, enum number which)
{
    const struct selftest_seen *s = &one->by[t->metric];
    double times = s->error / paired_error_wanted(t->rule);
    switch (which) {
    case SD_PAIR: return s->sd_pair;
    case SD_LAUNCH: return s->sd_launch;
    case ERROR_1S: return s->error * sqrt(one->spent_s);
    default: return fmax(one->spent_s * times * times, isfinite(times) ? t->least_s : NAN);
    }
}

/* A quantile of one number over the comparisons of a kind that tell it; NAN: none does. `room` is scratch. */
static double typical(const struct trials *t, enum number which, double q, double *room)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        double v = t->at[i].kind == t->kind ? number_of(t, &t->at[i], which) : NAN;
        if (isfinite(v)) room[n++] = v;
    }
    stats_sort(room, n);
    return n ? stats_quantile_sorted(room, n, q) : NAN;
}

static void fill_times(struct selftest_times *out, const struct trials *t, double *room)
{
    out->sd_pair = typical(t, SD_PAIR, 0.5, room);
    out->sd_launch = typical(t, SD_LAUNCH, 0.5, room);
    out->error_1s = typical(t, ERROR_1S, 0.5, room);
    out->detect_s = typical(t, DETECT_S, 0.9, room);
}

static void fill_kind(struct selftest_kind *out, struct trials *t, double *room)
{
    t->least_s = INFINITY;
    out->comparisons = out->alarms = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct selftest_trial *one = &t->at[i];
        if (one->kind != t->kind) continue;
        out->comparisons++;
        out->alarms += one->verdict == PAIRED_REGRESSED || one->verdict == PAIRED_IMPROVED;
        t->least_s = fmin(t->least_s, one->spent_s);
    }
    for (int m = 0; m < PAIRED_METRICS; m++) {
        t->metric = (enum paired_metric)m;
        fill_times(&out->by[m], t, room);
    }
}

/* ---- all ---- */

/* Both sides were the same thing, so each change that was found is a false alarm, whichever way it points. */
tare_status selftest_sum_up(struct selftest *out, const struct selftest_trial *trials, size_t n,
                            const struct paired_rule *r, tare_error *err)
{
    double *room = mem_new(n ? n : 1, sizeof *room);
    struct trials t = {.at = trials, .n = n, .rule = r};
    if (!room) return error_nomem(err, "%zu comparisons", n);
    out->comparisons = n;
    out->regressed = out->improved = out->inconclusive = out->contended = 0;
    for (size_t i = 0; i < n; i++) {
        out->regressed += trials[i].verdict == PAIRED_REGRESSED;
        out->improved += trials[i].verdict == PAIRED_IMPROVED;
        out->inconclusive += trials[i].verdict == PAIRED_INCONCLUSIVE;
        out->contended += trials[i].contended;
    }
    selftest_share(out->regressed + out->improved, n, LEVEL, &out->rate_lo, &out->rate_hi);
    for (t.kind = 0; t.kind < out->n_kinds; t.kind++) fill_kind(&out->kind[t.kind], &t, room);
    mem_free(room);
    return TARE_OK;
}

double selftest_mde(const struct selftest_times *t, double seconds, const struct paired_rule *r)
{
    return seconds > 0 ? paired_mde(t->error_1s / sqrt(seconds), r) : NAN;
}

void selftest_sentence(const struct selftest *s, const struct paired_rule *r, struct buf *out)
{
    uint64_t alarms = s->regressed + s->improved;
    buf_printf(out, "%llu of %llu comparisons of a thing with itself were called different",
               (unsigned long long)alarms, (unsigned long long)s->comparisons);
    buf_printf(out, " (between %s and %s of all such, at 95 %% confidence)", show_percent(s->rate_lo).s,
               show_percent(s->rate_hi).s);
    buf_printf(out,
               selftest_alarming(s, r) ? ": more than the %s that is promised, so do not trust "
                                         "verdicts of this machine"
                                       : "; %s at most is promised",
               show_percent(2 * r->alpha).s);
}

/* ---- as text: each line begins with its name, all of them in this order, or it is not ours ---- */

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
static double next_number(const char **at)
{
    char *end;
    if (!*at || isspace((unsigned char)**at) || **at == '-') return *at = NULL, NAN;
    double v = strtod(*at, &end);
    bool good = end != *at && (*end == ' ' || *end == 0) && (isnan(v) || (v >= 0 && v <= MOST));
    if (*end == ' ') end++;
    *at = good ? end : NULL;
    return good ? v : NAN;
}

static uint64_t next_count(const char **at)
{
    double v = next_number(at);
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
    s->spent_s = next_number(&at);
    uint64_t *const to[] = {&s->comparisons, &s->regressed, &s->improved, &s->inconclusive, &s->contended};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) *to[i] = next_count(&at);
    return at && !*at && isfinite(s->spent_s) && s->comparisons > 0 && s->contended <= s->comparisons &&
           s->regressed + s->improved + s->inconclusive <= s->comparisons;
}

static bool read_kind(struct selftest_kind *k, struct lines *l)
{
    const char *at = after(l, "kind ");
    k->comparisons = next_count(&at);
    k->alarms = next_count(&at);
    k->unit_s = next_number(&at);
    for (int m = 0; m < PAIRED_METRICS; m++) {
        double *const to[] = {&k->by[m].sd_pair, &k->by[m].sd_launch, &k->by[m].error_1s, &k->by[m].detect_s};
        for (size_t i = 0; i < sizeof to / sizeof *to; i++) *to[i] = next_number(&at);
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

/* SPDX-License-Identifier: MIT
 * selftest.h - what comparisons of a thing with itself say about a machine: how often it raises a false alarm, and
 * how small a change it can find in how much time. Pure functions of what was recorded, and the text in which the
 * answer is kept; measures nothing and opens no file. */
#ifndef ANALYZE_SELFTEST_H
#define ANALYZE_SELFTEST_H

#include "analyze/compare/paired.h"
#include "core/buf.h"

enum { SELFTEST_KINDS_MAX = 8, SELFTEST_NAME_SIZE = 32, SELFTEST_DAYS_MAX = 30 };

struct selftest_trial { /* one comparison */
    size_t kind;
    enum paired_verdict verdict; /* of all its metrics together */
    double spent_s;
    bool contended;
    struct selftest_seen {
        double error; /* standard error of ln(new / base) */
        double sd_pair, sd_launch;
    } by[PAIRED_METRICS];
};

/* What is typical of one kind of work, by wall or by CPU time. NAN: not known. */
struct selftest_times {
    double sd_pair, sd_launch; /* relative, of one pair and of launches beyond it; medians */
    double error_1s;           /* standard error after one second; it falls with the root of the time */
    double detect_s;           /* a change of rule.detect is found within this, in 9 of 10 comparisons */
};

struct selftest_kind {
    char name[SELFTEST_NAME_SIZE]; /* "1 ms in a process" */
    double unit_s;
    uint64_t comparisons, alarms;
    struct selftest_times by[PAIRED_METRICS];
};

struct selftest {
    char measured[SELFTEST_NAME_SIZE]; /* "2026-11-15T08:40:00Z" */
    double spent_s;
    uint64_t comparisons, regressed, improved, inconclusive, contended;
    double rate_lo, rate_hi; /* of false alarms of either kind: Clopper-Pearson, 95 % */
    size_t n_kinds;
    struct selftest_kind kind[SELFTEST_KINDS_MAX];
};

/* `out` comes with its kinds named and is otherwise filled. */
tare_status selftest_sum_up(struct selftest *out, const struct selftest_trial *trials, size_t n,
                            const struct paired_rule *r, tare_error *err);

/* The smallest change that is found in 95 of 100 comparisons of `seconds`; NAN: not known. */
double selftest_mde(const struct selftest_times *t, double seconds, const struct paired_rule *r);

/* Exact interval of a share of which `hits` of `n` were seen. */
void selftest_share(uint64_t hits, uint64_t n, double level, double *lo, double *hi);

/* Is the rate of false alarms surely above what the rule promises, over both directions? */
bool selftest_alarming(const struct selftest *s, const struct paired_rule *r);

/* In a sentence, for people. */
void selftest_sentence(const struct selftest *s, const struct paired_rule *r, struct buf *out);

/* ---- as text, for a cache ---- */

void selftest_write(const struct selftest *s, const char *fingerprint, int64_t now, struct buf *out);
/* False: damaged, of another host, or older than SELFTEST_DAYS_MAX days. `now` is in seconds of the wall clock. */
bool selftest_read(struct selftest *out, const char *fingerprint, int64_t now, const char *text, size_t n);

#endif

/* SPDX-License-Identifier: MIT
 * good.h - the last good run of a branch: the newest one from before whatever got worse and was neither made good nor
 * accepted since, as trends are judged (trend_answer.h). What a change is to be held against. */
#ifndef HISTORY_GOOD_H
#define HISTORY_GOOD_H

#include "history/trend_answer.h"

struct good_ask {
    const char *subject, *branch; /* branch NULL: any */
    const char *host, *project;   /* NULL: any; host: fingerprint */
    const char *metric;           /* NULL: latency.p50 */
};

struct good_answer {
    const struct measure *metric;
    char run[ULID_SIZE]; /* "": there is none */
    int64_t created_ms;
    char commit[65];
    char newest[ULID_SIZE]; /* run of the branch */
    size_t series, worse;   /* cases on hosts; those that got worse */
    double ratio;           /* the worst of them, now / then; 1: none */
    double value;           /* the newest level, of one series; NAN: of several */
};

/* Clean runs of the branch alone are looked at. TARE_INVALID: there is none. */
tare_status good_find(struct store *store, const struct good_ask *ask, struct good_answer *out,
                      tare_error *err);

/* "@good:main" is the last good run on main: its branch; NULL: another name. */
const char *good_branch(const char *name);
tare_status good_run(struct store *store, const struct good_ask *ask, char id[ULID_SIZE],
                     tare_error *err); /* TARE_INVALID: none */

/* How many points stand before what got worse; all where nothing did. *ratio: the level now to the one then. */
size_t good_points(const struct trend_series *s, bool more_is_better, double *ratio);
struct store_query good_query_of(const struct good_ask *ask);

/* As small pictures (SVG); g NULL: nothing is known of it. */
void good_badge(struct buf *out, const char *subject, const struct good_answer *g);
void good_line(struct buf *out, const struct trend_answer *found);

#endif

/* SPDX-License-Identifier: MIT
 * trend_show.h - the answer of `tare trend`: one found series, and all of them as text, JSON or CSV. Private to
 * cmd_trend.c and trend_show.c. */
#ifndef CLI_TREND_SHOW_H
#define CLI_TREND_SHOW_H

#include "analyze/judge/judge.h"
#include "analyze/compare/trend.h"
#include "cli/cli.h"
#include "core/arena.h"
#include "report/answer.h"
#include "store/store.h"

struct trend_series {                                 /* one case on one host */
    const char *case_name, *host, *hostname, *anchor; /* anchor "": values of their own */
    int64_t id;
    uint64_t in_store;
    size_t other_anchors;       /* that have a series of their own, which is not shown */
    struct store_points points; /* that could be used, oldest first */
    double *y;                  /* their logarithms */
    size_t left_out;            /* not above 0 */
    struct trend found;
    const char
        *gap; /* why a gate cannot be read of the newest run, which does not have the metric; NULL: it has */
    bool gap_fails; /* and what it has is worse beyond all plausible noise */
};

struct trend_answer {
    const char *history, *subject;
    const struct measure *metric;
    VEC(struct trend_series) series;
    struct arena arena; /* of names */
};

void trend_say(struct answer *a, const struct trend_answer *found, const struct term *term);
void trend_show_csv(struct buf *out, const struct trend_answer *a);

#endif

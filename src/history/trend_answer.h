/* SPDX-License-Identifier: MIT
 * trend_answer.h - a metric of the history over time, judged: trend_load.c asks the store and finds the levels,
 * trend_show.c tells it as text, JSON or CSV. For `tare trend` and the server alike. Machines are never mixed: each
 * has its own series. */
#ifndef HISTORY_TREND_ANSWER_H
#define HISTORY_TREND_ANSWER_H

#include "analyze/compare/trend.h"
#include "analyze/judge/judge.h"
#include "core/arena.h"
#include "report/answer.h"
#include "store/store.h"

struct trend_ask {
    struct store_query query; /* metric is not NULL; subject NULL: all, each for itself */
    uint64_t last;            /* newest so many runs of each series; 0: all */
    uint64_t reach;           /* so many, where the accepted run is not among those; 0: no more */
    const char *branch;       /* clean runs on this branch alone; NULL: all */
    bool anchored, absolute;  /* only ratios to an anchor; only values of their own */
};

/* The run that somebody accepted as what later ones are judged against: the baseline of this name. */
#define TREND_ACCEPTED "baseline"

struct trend_accepted {
    char run[ULID_SIZE];   /* "": none was */
    bool seen;             /* it is among the points */
    size_t at;             /* where */
    struct interval ratio; /* the newest level / the level that it is of; 1 where that is the same */
    bool worse;            /* surely, where there are enough runs for an interval */
    size_t change;         /* the worst change since, where worse */
};

struct trend_series {                                           /* one case on one host */
    const char *subject, *case_name, *host, *hostname, *anchor; /* anchor "": values of their own */
    int64_t id;
    uint64_t in_store;
    size_t other_anchors;       /* that have a series of their own, which is not shown */
    struct store_points points; /* that could be used, oldest first */
    double *y;                  /* their logarithms */
    size_t left_out;            /* not above 0 */
    struct trend found;
    struct trend_accepted accepted;
    const char
        *gap; /* why a gate cannot be read of the newest run, which does not have the metric; NULL: it has */
    bool gap_fails; /* and what it has is worse beyond all plausible noise */
};

struct trend_answer {
    const char *history, *subject; /* history NULL: it is nobody's business */
    const struct measure *metric;
    VEC(struct trend_series) series;
    struct arena arena; /* of names */
    uint64_t names;     /* series that fitted, before those were chosen that are shown */
    int64_t last_name;  /* the id of the last of them */
};

/* Every series that was asked for, with its levels. Release also after a failure. */
tare_status trend_load(struct store *store, const struct trend_ask *ask, struct trend_answer *to,
                       tare_error *err);
void trend_answer_release(struct trend_answer *a);

/* How the text looks; JSON has no look. */
struct trend_style {
    const char *worse, *better, *plain;
    unsigned width;
    bool utf8;
};
#define TREND_STYLE_NONE      \
    {                         \
        "", "", "", 80, false \
    }

void trend_say(struct answer *a, const struct trend_answer *found, const struct trend_style *style);
void trend_show_csv(struct buf *out, const struct trend_answer *a);

#endif

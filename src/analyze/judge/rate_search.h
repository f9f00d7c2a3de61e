/* SPDX-License-Identifier: MIT
 * rate_search.h - the highest rate at which a service keeps limits: which rate to try next, and what all tries together
 * say. Doubles until the limits are missed, halves what lies between, then confirms both ends in longer windows. Rates
 * are steps of 4.4 %, so that two searches try the same ones. Pure: measures nothing. */
#ifndef ANALYZE_RATE_SEARCH_H
#define ANALYZE_RATE_SEARCH_H

#include "analyze/judge/judge.h"

enum rate_stage { RATE_DOUBLE, RATE_HALVE, RATE_CONFIRM, RATE_DONE };
extern const char *const rate_stage_words[];

enum { RATE_STEPS_PER_DOUBLING = 16 };

struct rate_search {
    enum rate_stage stage;
    int at, least;    /* the step to be tried now; none below this one is */
    int kept, missed; /* the highest that seems to keep the limits; the lowest that seems not to */
    bool has_kept, has_missed;
    int passed, failed;                         /* the same, surely */
    bool has_passed, has_failed, failed_firmly; /* firmly: in a window that confirms */
    bool limited; /* nothing above `kept` can be tried: this client cannot send faster */
    unsigned confirms, low_doubts, high_doubts;
};

double rate_of_step(int step);  /* requests per second, three digits */
int step_of_rate(double per_s); /* the highest whose rate is not above it */

/* `least`: of lower rates a window would have next to no requests. */
void rate_search_begin(struct rate_search *s, double per_s, double least);

/* What a window at the current rate showed: PASS and FAIL surely, else whether it seems so. */
struct rate_told {
    bool surely, kept;
};
void rate_search_tell(struct rate_search *s, struct rate_told t);
/* This client was at its limit at the current rate: nothing was learned there, and no higher one is tried. */
void rate_search_limit(struct rate_search *s);

unsigned rate_search_left(const struct rate_search *s); /* windows to come, about */
/* Why `passed` or `failed` is not known; NULL: both are. */
const char *rate_search_why(const struct rate_search *s);

/* ---- the limits: "p99<=200ms,ttft.p99<=500ms" ---- */

enum { RATE_LIMITS_MOST = 8 };
struct rate_limits {
    size_t n;
    struct target of[RATE_LIMITS_MOST];
};
/* How long a window has to be for them to be judged, ns: a queue that grows must have the time to show it, and a
 * percentile needs its requests. `sure`: for a verdict, not only a direction. */
double rate_window_ns(const struct rate_limits *l, double per_s, bool sure);
/* All of them, of one measured case: the worst verdict. */
tare_status rate_judge(const struct rate_limits *l, const struct run_case *c, struct rate_told *out,
                       tare_error *err);
/* Was the client so late itself that a miss may be its own? */
bool rate_client_late(const struct rate_limits *l, const struct run_case *c);

#endif

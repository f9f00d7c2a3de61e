/* SPDX-License-Identifier: MIT
 * queue.h - how many replicas a rate of requests needs to keep a limit on response time: a
 * first-come-first-served queue before c equal servers, simulated with measured service times (resampled,
 * seeded) and Poisson arrivals. Pure: the same input gives the same answer.
 *
 * Assumed, and to be said wherever results are shown: a request is one run of the case; each replica
 * serves one request at a time, as fast as it was measured; requests arrive independently of each other;
 * service times do not depend on the load. */
#ifndef ANALYZE_QUEUE_H
#define ANALYZE_QUEUE_H

#include "core/error.h"
#include "run/value.h"

struct queue_load {
    const double *service_ns; /* measured times of one run */
    size_t n;
    double rate;     /* requests per second */
    double quantile; /* of the response time, 0.95; 0: the mean */
    uint64_t seed;
};

struct queue_result {
    double response_ns, lo, hi; /* the quantile (or mean) of waiting plus service; INFINITY when overloaded */
    double wait_mean_ns;
    double utilization; /* offered load over servers: at 1 the queue grows without end */
    uint64_t arrivals;  /* simulated, warm-up not counted */
};

/* One number of servers. */
tare_status queue_simulate(const struct queue_load *load, uint32_t servers, struct queue_result *out,
                           tare_error *err);

struct queue_goal {
    double limit_ns; /* of the quantile */
    double headroom; /* 0.2: must hold at 1.2 times the rate */
    uint32_t most;   /* servers; 0: QUEUE_SERVERS_MAX */
};
#define QUEUE_SERVERS_MAX 4096

struct queue_plan {
    bool possible;
    const char *why_not; /* when not possible */
    double service_ns;   /* the quantile (or mean) of the service time alone: no number of servers beats it */
    double mean_ns;      /* mean service time */
    uint32_t servers;
    struct queue_result at_rate; /* at the rate asked for, without headroom */
    double breaks_at;            /* requests per second at which these servers miss the limit */
    double saturates_at;         /* requests per second at which the queue grows without end */
};

tare_status queue_plan(const struct queue_load *load, const struct queue_goal *goal, struct queue_plan *out,
                       tare_error *err);

#endif

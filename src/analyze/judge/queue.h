/* SPDX-License-Identifier: MIT
 * queue.h - how many replicas a rate of requests needs to keep a limit on response time: a
 * first-come-first-served queue before c equal servers, simulated with measured service times (resampled,
 * seeded) and Poisson arrivals. Pure: the same input gives the same answer.
 *
 * Assumed, and to be said wherever results are shown: a request is one run of the case; each replica
 * serves one request at a time, as fast as it was measured; requests arrive independently of each other;
 * service times do not depend on the load.
 *
 * A service that was measured under open-loop load is not simulated: a case at a rate at which the limit was surely
 * kept says what one replica takes, and the rate is divided evenly. */
#ifndef ANALYZE_QUEUE_H
#define ANALYZE_QUEUE_H

#include "analyze/judge/judge.h"

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

/* ---- replicas and machines from one measured case of a run: the queue meets units, memory, processors ---- */

struct capacity_goal {
    double rate;         /* per second */
    char rate_unit[24];  /* as written: "/s" and "requests/s" are requests, "texts/s" are units of the case */
    struct target limit; /* on a percentile or the mean of the latency */
    double headroom;
    uint64_t seed;
};

/* Is `t` a limit that a plan can hold: an upper one, on latency.mean or a percentile? */
tare_status capacity_check_limit(const struct target *t, tare_error *err);

struct capacity {
    const struct run *run;
    const struct run_case *c;
    const char *unusable; /* why the case cannot be planned with; NULL: it can */
    bool measured;        /* of a service: its rates under load, nothing is simulated */
    bool few_samples; /* fewer than 5 of the single times lie beyond the percentile: its tail is a guess */
    double requests;  /* per second */
    struct queue_plan plan;
    struct known_f64 threads, memory; /* of one replica: processors, bytes */
    struct known_f64 machines; /* like the measured one, by the processors and memory that replicas need */
    const char *machines_by;   /* "processors" or "memory": what fills a machine first; NULL: unknown */
};

tare_status capacity_plan(struct capacity *out, const struct run *run, const struct run_case *c,
                          const struct capacity_goal *goal, tare_error *err);

/* Fewer replicas, then a shorter response. Only of possible ones. */
bool capacity_is_better(const struct capacity *a, const struct capacity *b);

#endif

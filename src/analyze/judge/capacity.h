/* SPDX-License-Identifier: MIT
 * capacity.h - replicas and machines for a rate of requests, from one measured case of a run. The queue
 * is queue.h, with its assumptions; here it meets the document: units, memory, processors. */
#ifndef ANALYZE_CAPACITY_H
#define ANALYZE_CAPACITY_H

#include "analyze/judge/judge.h"
#include "analyze/judge/queue.h"

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

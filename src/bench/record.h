/* SPDX-License-Identifier: MIT
 * record.h - what was measured, into the run document: samples, percentiles, throughput, and how it was planned. */
#ifndef BENCH_RECORD_H
#define BENCH_RECORD_H

#include "bench/engine.h"

struct sampled {
    const uint64_t *ns; /* latencies, in time order */
    size_t n;
    const struct wait *waits; /* runs that took longer than any of these; in time order */
    size_t n_waits;
    double units; /* per run */
    const char *unit;
    const struct slice *slices; /* for the throughput and its interval */
    size_t n_slices;
    bool thinned; /* these are not all that there were */
};
/* Fills samples, confidence, latency_ns, histogram, samples_raw, throughput; reasons go to the case's `unknown`. */
tare_status summarise(struct run *run, struct run_case *c, const struct sampled *s, tare_error *err);
/* The fewest samples with which the 95 % interval of quantile q is bounded above. */
uint64_t summary_samples_needed(double q);
/* Of a service: what became of its requests, beside the latency. */
tare_status record_http(struct bench *b, struct run_case *c, const struct case_work *w, tare_error *err);
#define HTTP_CLIENT_BUSY 0.85 /* of a processor: beyond, this client was what was measured */
tare_status record_case(struct bench *b, struct case_work *w, tare_error *err);
void record_plan(struct bench *b);

#endif

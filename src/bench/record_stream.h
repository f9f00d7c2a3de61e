/* SPDX-License-Identifier: MIT
 * record_stream.h - what became of requests to a language model, into the case's `stream`: times to tokens and between
 * them, tokens per second, goodput. Judges nothing. */
#ifndef BENCH_RECORD_STREAM_H
#define BENCH_RECORD_STREAM_H

#include "bench/slo.h"
#include "load/llm.h"
#include "run/run.h"

struct streamed {
    struct run *run;
    struct run_case *c;
    const struct load_outcome
        *outcomes; /* in the order in which they were due; those of warm-up are left out */
    size_t n;
    uint64_t one_in;              /* of so many requests: counts are estimates where it is above 1 */
    uint64_t began_ns, window_ns; /* when load was offered */
    const struct llm_pool *pool;
    const struct slo *slo; /* NULL: none */
};
tare_status record_stream(const struct streamed *s, tare_error *err);

#endif

/* SPDX-License-Identifier: MIT
 * slo.h - limits that each request has to keep by itself: ttft<=500ms,tpot<=50ms. What one took longer than, or never
 * did, it missed. Pure. */
#ifndef BENCH_SLO_H
#define BENCH_SLO_H

#include "core/interval.h"
#include "load/outcome.h"
#include "core/error.h"

/* What one request took, ns; NAN: it has none of it, though it was answered. Of one that failed nothing is asked. */
#define REQUEST_TIME_MAP(X)                                                    \
    X(LATENCY, "latency", "to the last event with content, else the end")      \
    X(TTFT, "ttft", "to the first event with content")                         \
    X(TTFT_ANSWER, "ttft_answer", "to the first event that is not reasoning")  \
    X(GAP_MAX, "gap_max", "the longest gap between events")                    \
    X(TPOT, "tpot", "time per output token after the first event")

enum request_time {
#define X(name, word, help) REQUEST_##name,
    REQUEST_TIME_MAP(X)
#undef X
        REQUEST_TIMES
};
double request_time(const struct load_outcome *o, enum request_time what);

struct slo {
    char text[160];              /* as it is told: "ttft<=500ms,tpot<=50ms"; "": none */
    double limit[REQUEST_TIMES]; /* ns; 0: none */
};
tare_status slo_parse(struct slo *out, const char *text, tare_error *err);
const char *slo_word(enum request_time what);
/* Whether it missed this limit; one that was not answered misses all. */
bool slo_missed(const struct slo *s, enum request_time what, const struct load_outcome *o);
bool slo_kept(const struct slo *s, const struct load_outcome *o);

/* A share k of n with its exact binomial interval (Clopper and Pearson), 95 %. */
struct interval share_interval(uint64_t k, uint64_t n);

#endif

/* SPDX-License-Identifier: MIT
 * ab_worker.h - what a comparison and its worker processes say to each other, and the worker's half of it. Packets
 * over one socket: a start with the specification behind it, then one request and one reply at a time. The side
 * that is not asked sleeps in recv(), so that it takes no CPU from the other. */
#ifndef BENCH_AB_WORKER_H
#define BENCH_AB_WORKER_H

#include "subject/subject.h"

enum { AB_WORKER_FD = 3, AB_SPEC_MAX = 1 << 16, AB_TEXT_MAX = 512 };
#define AB_MAGIC UINT32_C(0x31424154) /* "TAB1" */

enum ab_request_kind { AB_ASK_START = 1, AB_ASK_RUN, AB_ASK_END };

struct ab_request {
    uint32_t magic, kind;
    uint64_t n; /* START: bytes of heap padding; RUN: repeats */
};

struct ab_reply {
    uint32_t magic;
    int32_t status;                                   /* tare_status; negative: text says why */
    uint64_t wall_ns, cpu_ns, involuntary, voluntary; /* RUN */
    uint64_t load_ns, warmup_runs, typical_ns;        /* START */
    uint64_t rss_peak;                                /* END */
    char text[AB_TEXT_MAX];
};

/* The first packets: a START and the specification, at most size - 1 bytes, NUL-terminated into `spec`. */
tare_status ab_worker_begin(int fd, struct ab_request *start, char *spec, size_t size, tare_error *err);

/* Say that the worker cannot go on. */
void ab_worker_refuse(int fd, tare_status status, const char *text);

/* Load, warm up, answer until END or until the other side is gone. A subject's failure is told and ends it. */
tare_status ab_worker_serve(int fd, struct subject *s, const struct case_params *p,
                            const struct case_record *to, tare_error *err);

#endif

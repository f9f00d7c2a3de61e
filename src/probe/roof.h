/* SPDX-License-Identifier: MIT
 * roof.h - what this machine can reach: fp32 multiply-adds and int8 dot products per second and bytes per second from
 * memory, with a given number of threads, measured by short calibrated kernels chosen for this processor at run time
 * (SSE2, AVX2+FMA, AVX-512, VNNI; NEON). The best of several short repetitions, because a roof is a maximum. Cached per
 * host fingerprint and number of threads. Prints nothing. */
#ifndef PROBE_ROOF_H
#define PROBE_ROOF_H

#include "core/clock.h"
#include "run/run.h"

enum { ROOF_THREADS_MAX = 1024 };

struct roof_options {
    unsigned threads;        /* 1 to ROOF_THREADS_MAX */
    struct duration budget;  /* in all; default 1 s when 0 */
    const char *cache_dir;   /* NULL: do not keep, do not look. A file per fingerprint and threads */
    const char *fingerprint; /* of the host, for the cache */
    bool fresh;              /* measure even if cached */
    size_t memory_bytes;     /* of the block that is moved; 0: by the caches and what memory there is */
};

struct roof {
    double flops, int_ops; /* per second; int_ops NAN: no int8 instructions worth the name */
    double bandwidth;      /* bytes per second: the better of the next two. NAN: too little memory to tell */
    double read, triad;    /* reading alone; a = b + s * c, counted as three numbers moved per element */
    unsigned threads;
    const char *kernel, *int_kernel; /* "avx2-fma", "avx512", ..; int_kernel NULL: none */
    char measured[32];               /* RFC 3339 */
    bool cached;
    bool busy; /* others had the processors even in the best turn: too low, and not kept */
};

/* A cached value if there is a good one, else a measurement of about the budget (up to three times that on a busy
 * machine), then kept for the next time if that is possible. Fails when threads cannot be started or memory runs out;
 * never because of the cache. */
tare_status roof_measure(struct roof *out, const struct roof_options *o, tare_error *err);
/* Only look into the cache; false: nothing there that is whole, of this host, these threads, these kernels, and at
 * most 30 days old. */
bool roof_recall(struct roof *out, const struct roof_options *o);
void roof_record(const struct roof *r, struct run *run); /* into run->roof */

#endif

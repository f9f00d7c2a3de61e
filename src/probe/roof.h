/* SPDX-License-Identifier: MIT
 * roof.h - what this machine can reach: fp32 multiply-adds and int8 dot products per second and bytes per second from
 * memory, with a given number of threads, measured by short calibrated kernels chosen for this processor at run time
 * (SSE2, AVX2+FMA, AVX-512, VNNI; NEON). The best of several short repetitions, because a roof is a maximum. Cached per
 * host fingerprint and number of threads. Prints nothing. */
#ifndef PROBE_ROOF_H
#define PROBE_ROOF_H

#include "core/clock.h"
#include "run/run.h"

struct roof_options {
    unsigned threads;        /* at least 1 */
    struct duration budget;  /* in all; default 1 s when 0 */
    const char *cache_dir;   /* NULL: do not keep, do not look. A file per fingerprint and threads */
    const char *fingerprint; /* of the host, for the cache */
    bool fresh;              /* measure even if cached */
};

struct roof {
    double flops, int_ops, bandwidth; /* per second; int_ops NAN: no int8 instructions worth the name */
    unsigned threads;
    const char *kernel, *int_kernel; /* "avx2-fma", "avx512", .. */
    char measured[32];               /* RFC 3339 */
    bool cached;
};

tare_status roof_measure(struct roof *out, const struct roof_options *o, tare_error *err);
void roof_record(const struct roof *r, struct run *run); /* into run->roof */

#endif

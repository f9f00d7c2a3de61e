/* SPDX-License-Identifier: MIT
 * noise.h - how quiet this machine is: the same small piece of work, timed again and again, for a while.
 * What varies is the machine. Prints nothing; a share that cannot be known is NAN. */
#ifndef PROBE_NOISE_H
#define PROBE_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/error.h"

enum { NOISE_CPU, NOISE_MEMORY, NOISE_KERNELS };

struct noise_kernel {
    const char *name; /* "cpu": a chain of dependent integer operations; "memory": of cache-missing loads */
    uint64_t batches;
    double batch_ns; /* median length of a batch */
    double step_ns;  /* median length of one operation in it */
    double spread;   /* median absolute deviation / median */
    double tail;     /* p99 / p50 */
    double switched; /* share of batches in which the thread was moved off its CPU against its will */
    /* The smallest relative difference that can be told from none: */
    double resolve_ab;   /* of two variants that take turns, in the time of this measurement */
    double resolve_runs; /* of two runs one after the other, each a tenth of it; never below resolve_ab */
};

struct noise {
    struct noise_kernel kernel[NOISE_KERNELS];
    double steal;     /* share of the machine's CPU time taken by the hypervisor meanwhile; NAN: not told */
    double cpu_share; /* CPU time / wall time of the measuring thread: under 0.95 it had to share its CPU */
    struct duration took;
};

struct noise_options {
    struct duration budget;
    size_t memory_bytes;                   /* what the memory kernel walks */
    void (*tick)(void *ctx, double share); /* may be NULL; called between batches */
    void *ctx;
};

tare_status noise_measure(struct noise *out, const struct noise_options *opts, tare_error *err);

/* What a series of batch times, in time order, says. `switched` may be NULL. Needs 20 batches. */
struct noise_series {
    const double *ns;
    const bool *switched;
    size_t n;
};
tare_status noise_summarise(struct noise_kernel *out, const struct noise_series *x, tare_error *err);

#endif

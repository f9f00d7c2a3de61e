/* SPDX-License-Identifier: MIT
 * roof_kernel.h - the inner loops of roof.h, one row per instruction set. They are written in assembly, because the
 * measure is the processor: compiler, optimisation level and sanitizers must not change it. Private to src/probe. */
#ifndef PROBE_ROOF_KERNEL_H
#define PROBE_ROOF_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* To be raised when a kernel changes: older cached values are then measured anew. */
enum { ROOF_KERNELS_VERSION = 1 };

enum roof_kind { ROOF_FLOAT, ROOF_INT };

struct roof_kernel {
    const char *name;
    enum roof_kind kind;
    bool (*usable)(void);         /* by this processor under this system */
    void (*run)(uint64_t rounds); /* in registers alone */
    double ops;                   /* per round: a multiply and an add are two */
};

/* Each ends with name NULL. The plain ones are C, and only used for a kind that no native one is usable for. */
extern const struct roof_kernel roof_kernels_native[], roof_kernels_plain[];

enum { ROOF_BLOCK = 256 }; /* memory kernels take multiples of this many bytes, aligned to 64 */

void roof_read(const void *from, size_t bytes);
/* to = a + s * b, each so many bytes; where there are such stores they go past the caches, so that the line written
 * is not read first. */
void roof_triad(void *to, const void *a, const void *b, size_t bytes);

#endif

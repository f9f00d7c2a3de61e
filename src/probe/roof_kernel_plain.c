/* SPDX-License-Identifier: MIT
 * roof_kernel_plain.c - see roof_parts.h: C for processors that have no file of their own. What the compiler makes
 * of it is less than the processor's best at times, but more than no roof. */
#include "probe/roof_parts.h"

typedef float floats __attribute__((vector_size(16)));

enum { CHAINS = 8 };

static void run_plain(uint64_t rounds)
{
    floats sum[CHAINS] = {{0}}, most = {0.999f, 0.999f, 0.999f, 0.999f}, step = {1e-3f, 1e-3f, 1e-3f, 1e-3f};
    for (uint64_t r = 0; r < rounds; r++)
        for (int i = 0; i < CHAINS; i++) sum[i] = sum[i] * most + step;
    __asm__ volatile("" : : "r"(&sum) : "memory"); /* the result counts as used */
}

const struct roof_kernel roof_kernels_plain[] = {
    {"plain", ROOF_FLOAT, NULL, run_plain, CHAINS * 4 * 2},
    {NULL, ROOF_FLOAT, NULL, NULL, 0},
};

#if !defined(__x86_64__) && !defined(__aarch64__)

const struct roof_kernel roof_kernels_native[] = {{NULL, ROOF_FLOAT, NULL, NULL, 0}};

void roof_read(const void *from, size_t bytes)
{
    const floats *at = from;
    floats sum[4] = {{0}};
    for (size_t i = 0; i + 4 <= bytes / sizeof *at; i += 4)
        for (int k = 0; k < 4; k++) sum[k] += at[i + (size_t)k];
    __asm__ volatile("" : : "r"(&sum) : "memory");
}

void roof_triad(void *to, const void *a, const void *b, size_t bytes)
{
    floats *out = to;
    const floats *x = a, *y = b;
    for (size_t i = 0; i < bytes / sizeof *x; i++) out[i] = x[i] + 3.0f * y[i];
    __asm__ volatile("" : : "r"(to) : "memory");
}

#endif

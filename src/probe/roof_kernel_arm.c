/* SPDX-License-Identifier: MIT
 * roof_kernel_arm.c - aarch64: see roof_parts.h. NEON, which every such processor has, and the dot-product and
 * matrix instructions where the kernel reports them. */
#include "probe/roof_parts.h"

#if defined(__aarch64__)

#include <sys/auxv.h>

#define HAS_DOTPROD (1ul << 20) /* in AT_HWCAP */
#define HAS_I8MM (1ul << 13)    /* in AT_HWCAP2 */

#define TIMES_16(f)                                                                                           \
    f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(16) f(17) f(18) f(19) f(20) f(21) f(22) f(23)
#define ALL_V                                                                                                 \
    "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",   \
        "v30", "v31"
#define CLEAR(n) "movi v" #n ".16b, #0\n\t"

/* Set up, then rounds of `op` in all registers. */
#define KERNEL(name, setup, op)                                                                               \
    static void run_##name(uint64_t rounds)                                                                   \
    {                                                                                                         \
        __asm__ volatile(setup TIMES_16(CLEAR) "1:\n\t" TIMES_16(op) "subs %0, %0, #1\n\tb.ne 1b"            \
                         : "+&r"(rounds)                                                                      \
                         :                                                                                    \
                         : ALL_V, "cc");                                                                      \
    }
#define BYTES "movi v30.16b, #3\n\tmovi v31.16b, #3\n\t"

#define FMLA(n) "fmla v" #n ".4s, v30.4s, v31.4s\n\t"
KERNEL(neon, "fmov v30.4s, #1.0\n\tfmov v31.4s, #0.125\n\t", FMLA)

static bool has_dot(void)
{
    return getauxval(AT_HWCAP) & HAS_DOTPROD;
}

static bool has_i8mm(void)
{
    return getauxval(AT_HWCAP2) & HAS_I8MM;
}

/* As numbers, because not every assembler knows them by name: sdot vN.4s, v30.16b, v31.16b, and smmla likewise. */
#define SDOT(n) ".inst 0x4e9f97c0 + " #n "\n\t"
#define SMMLA(n) ".inst 0x4e9fa7c0 + " #n "\n\t"
KERNEL(dot, BYTES, SDOT)
KERNEL(i8mm, BYTES, SMMLA)

const struct roof_kernel roof_kernels_native[] = {
    {"neon", ROOF_FLOAT, NULL, run_neon, 16 * 4 * 2},
    {"neon-dotprod", ROOF_INT, has_dot, run_dot, 16 * 16 * 2},
    {"neon-i8mm", ROOF_INT, has_i8mm, run_i8mm, 16 * 32 * 2},
    {NULL, ROOF_FLOAT, NULL, NULL, 0},
};

void roof_read(const void *from, size_t bytes)
{
    const char *end = (const char *)from + bytes;
    __asm__ volatile("1:\n\tldp q0, q1, [%0]\n\tldp q2, q3, [%0, #32]\n\tldp q4, q5, [%0, #64]\n\t"
                     "ldp q6, q7, [%0, #96]\n\tadd %0, %0, #128\n\tcmp %0, %1\n\tb.lo 1b"
                     : "+&r"(from)
                     : "r"(end)
                     : ALL_V, "cc", "memory");
}

void roof_triad(void *to, const void *a, const void *b, size_t bytes)
{
    const char *end = (const char *)to + bytes;
    __asm__ volatile("fmov v30.4s, #1.0\n\t1:\n\tldp q0, q1, [%1], #32\n\tldp q2, q3, [%2], #32\n\t"
                     "fmla v0.4s, v2.4s, v30.4s\n\tfmla v1.4s, v3.4s, v30.4s\n\tstnp q0, q1, [%0]\n\t"
                     "add %0, %0, #32\n\tcmp %0, %3\n\tb.lo 1b"
                     : "+&r"(to), "+&r"(a), "+&r"(b)
                     : "r"(end)
                     : ALL_V, "cc", "memory");
}

#endif

/* SPDX-License-Identifier: MIT
 * roof_kernel_x86.c - x86-64: see roof_parts.h. Twelve or fourteen independent chains hide the latency of the
 * instructions (4 or 5 cycles, up to 2 a cycle) on every processor so far. Operands are neither zero nor denormal,
 * since both change what some processors need. */
#include "probe/roof_parts.h"

#if defined(__x86_64__)

#include <cpuid.h>

#define TIMES_7(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6)
#define TIMES_14(f) TIMES_7(f) f(7) f(8) f(9) f(10) f(11) f(12) f(13)
#define ALL_XMM                                                                                               \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",         \
        "xmm12", "xmm13", "xmm14", "xmm15"

static const float one = 1.0f, step = 1.0e-3f;
static const uint32_t bytes_of_3 = 0x03030303, words_of_1 = 0x00010001;

/* ---- fp32 ------------------------------------------------------------------------------------ */

/* Without a fused instruction the most is as many multiplications as additions, each in its own chains. */
#define SSE_SET(n) "movaps %%xmm14, %%xmm" #n "\n\t"
#define SSE_MUL(n) "mulps %%xmm14, %%xmm" #n "\n\t"
#define SSE_ADD(n) "addps %%xmm15, %%xmm" #n "\n\t"
#define SSE_ADDS SSE_ADD(7) SSE_ADD(8) SSE_ADD(9) SSE_ADD(10) SSE_ADD(11) SSE_ADD(12) SSE_ADD(13)
static void run_sse2(uint64_t rounds)
{
    __asm__ volatile("movss %1, %%xmm14\n\tshufps $0, %%xmm14, %%xmm14\n\t"
                     "movss %2, %%xmm15\n\tshufps $0, %%xmm15, %%xmm15\n\t" TIMES_14(
                         SSE_SET) "1:\n\t" TIMES_7(SSE_MUL) SSE_ADDS "dec %0\n\tjnz 1b"
                     : "+&r"(rounds)
                     : "m"(one), "m"(step)
                     : ALL_XMM, "cc");
}

#define HAS(name, condition)                                                                                  \
    static bool has_##name(void)                                                                              \
    {                                                                                                         \
        return condition;                                                                                     \
    }

/* A kernel: set up, then rounds of `body`. %1 and %2 are the constants that it multiplies. */
#define KERNEL(name, setup, body, a, b)                                                                       \
    static void run_##name(uint64_t rounds)                                                                   \
    {                                                                                                         \
        __asm__ volatile(setup "1:\n\t" body "dec %0\n\tjnz 1b\n\tvzeroupper"                                 \
                         : "+&r"(rounds)                                                                      \
                         : "m"(a), "m"(b)                                                                     \
                         : ALL_XMM, "cc");                                                                    \
    }

HAS(avx2, __builtin_cpu_supports("avx2"))
HAS(fma, has_avx2() && __builtin_cpu_supports("fma"))
HAS(avx512, __builtin_cpu_supports("avx512f"))
#define YMM_CLEAR(n) "vxorps %%ymm" #n ", %%ymm" #n ", %%ymm" #n "\n\t"
#define ZMM_CLEAR(n) "vpxord %%zmm" #n ", %%zmm" #n ", %%zmm" #n "\n\t"
#define YMM_FMA(n) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #n "\n\t"
#define ZMM_FMA(n) "vfmadd231ps %%zmm14, %%zmm15, %%zmm" #n "\n\t"
#define FLOATS(reg) "vbroadcastss %1, %%" reg "14\n\tvbroadcastss %2, %%" reg "15\n\t"
KERNEL(fma, FLOATS("ymm") TIMES_14(YMM_CLEAR), TIMES_14(YMM_FMA), one, step)
KERNEL(avx512, FLOATS("zmm") TIMES_14(ZMM_CLEAR), TIMES_14(ZMM_FMA), one, step)

/* ---- int8: unsigned times signed into 32 bits, as quantised layers need it ------------------- */

#define BYTES(reg) "vpbroadcastd %1, %%" reg "14\n\tvpbroadcastd %1, %%" reg "15\n\t"
#define WORDS(reg) "vpbroadcastd %2, %%" reg "13\n\t"

/* Without dot-product instructions it takes three: multiply and add pairs, add pairs of pairs, add up. */
#define MADD(reg, n)                                                                                          \
    "vpmaddubsw %%" reg "14, %%" reg "15, %%" reg "12\n\tvpmaddwd %%" reg "13, %%" reg "12, %%" reg "12\n\t"   \
    "vpaddd %%" reg "12, %%" reg #n ", %%" reg #n "\n\t"
#define YMM_MADD(n) MADD("ymm", n)
#define ZMM_MADD(n) MADD("zmm", n)
HAS(avx512bw, has_avx512() && __builtin_cpu_supports("avx512bw"))
KERNEL(madd_avx2, BYTES("ymm") WORDS("ymm") TIMES_7(YMM_CLEAR), TIMES_7(YMM_MADD), bytes_of_3, words_of_1)
KERNEL(madd_avx512, BYTES("zmm") WORDS("zmm") TIMES_7(ZMM_CLEAR), TIMES_7(ZMM_MADD), bytes_of_3, words_of_1)

/* Not a word that all compilers know: leaf 7, part 1, bit 4 of eax. */
static bool has_avx_vnni(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4);
}

#define YMM_DOT(n) "%{vex%} vpdpbusd %%ymm14, %%ymm15, %%ymm" #n "\n\t"
#define ZMM_DOT(n) "vpdpbusd %%zmm14, %%zmm15, %%zmm" #n "\n\t"
HAS(avx512_vnni, has_avx512() && __builtin_cpu_supports("avx512vnni"))
KERNEL(vnni, BYTES("ymm") TIMES_14(YMM_CLEAR), TIMES_14(YMM_DOT), bytes_of_3, bytes_of_3)
KERNEL(avx512_vnni, BYTES("zmm") TIMES_14(ZMM_CLEAR), TIMES_14(ZMM_DOT), bytes_of_3, bytes_of_3)

const struct roof_kernel roof_kernels_native[] = {
    {"avx512", ROOF_FLOAT, has_avx512, run_avx512, 14 * 16 * 2},
    {"avx2-fma", ROOF_FLOAT, has_fma, run_fma, 14 * 8 * 2},
    {"sse2", ROOF_FLOAT, NULL, run_sse2, 14 * 4},
    {"avx512-vnni", ROOF_INT, has_avx512_vnni, run_avx512_vnni, 14 * 64 * 2},
    {"avx-vnni", ROOF_INT, has_avx_vnni, run_vnni, 14 * 32 * 2},
    {"avx512bw", ROOF_INT, has_avx512bw, run_madd_avx512, 7 * 64 * 2},
    {"avx2", ROOF_INT, has_avx2, run_madd_avx2, 7 * 32 * 2},
    {NULL, ROOF_FLOAT, NULL, NULL, 0},
};

/* ---- memory: 16 bytes a load keep up with any memory ----------------------------------------- */

#define READ(n, at) "movaps " #at "(%0), %%xmm" #n "\n\t"
void roof_read(const void *from, size_t bytes)
{
    const char *end = (const char *)from + bytes;
    __asm__ volatile("1:\n\t" READ(0, 0) READ(1, 16) READ(2, 32) READ(3, 48) READ(4, 64) READ(5, 80)
                         READ(6, 96) READ(7, 112) READ(8, 128) READ(9, 144) READ(10, 160) READ(11, 176)
                             READ(12, 192) READ(13, 208) READ(14, 224)
                                 READ(15, 240) "add $256, %0\n\tcmp %1, %0\n\tjb 1b"
                     : "+&r"(from)
                     : "r"(end)
                     : ALL_XMM, "cc", "memory");
}

#define TRIAD(n, at)                                                                                          \
    "movaps " #at "(%2,%3), %%xmm" #n "\n\tmulps %%xmm15, %%xmm" #n "\n\taddps " #at "(%1,%3), %%xmm" #n      \
    "\n\tmovntps %%xmm" #n ", " #at "(%0,%3)\n\t"
void roof_triad(void *to, const void *a, const void *b, size_t bytes)
{
    size_t at = 0;
    __asm__ volatile("movss %5, %%xmm15\n\tshufps $0, %%xmm15, %%xmm15\n\t1:\n\t" TRIAD(0, 0) TRIAD(1, 16)
                         TRIAD(2, 32) TRIAD(3, 48) "add $64, %3\n\tcmp %4, %3\n\tjb 1b\n\tsfence"
                     : "+&r"(to), "+&r"(a), "+&r"(b), "+&r"(at)
                     : "r"(bytes), "m"(one)
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm15", "cc", "memory");
}

#endif

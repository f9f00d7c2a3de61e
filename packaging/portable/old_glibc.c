/* SPDX-License-Identifier: MIT
 * old_glibc.c - what the portable build links to and neither a glibc of 2012 nor its compiler has: a newer glibc's own at run time, or the
 * answer that there is none; and what the processor can do, as __builtin_cpu_supports() looks for it. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <spawn.h>

int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions, const char *folder)
{
    int (*of_libc)(posix_spawn_file_actions_t *, const char *) =
        (int (*)(posix_spawn_file_actions_t *, const char *))dlsym(RTLD_NEXT,
                                                                   "posix_spawn_file_actions_addchdir_np");
    return of_libc ? of_libc(actions, folder) : ENOSYS;
}

struct mallinfo2 mallinfo2(void)
{
    struct mallinfo2 (*of_libc)(void) = (struct mallinfo2(*)(void))dlsym(RTLD_NEXT, "mallinfo2");
    if (of_libc) return of_libc();
    struct mallinfo old = mallinfo(); /* the same, in fields that overflow at 2 GiB */
    return (struct mallinfo2){.arena = (unsigned)old.arena,
                              .ordblks = (unsigned)old.ordblks,
                              .hblks = (unsigned)old.hblks,
                              .hblkhd = (unsigned)old.hblkhd,
                              .uordblks = (unsigned)old.uordblks,
                              .fordblks = (unsigned)old.fordblks,
                              .keepcost = (unsigned)old.keepcost};
}

/* Numbers of features that libgcc and compiler-rt have agreed on. */
enum { HAS_AVX2 = 10, HAS_FMA = 14, HAS_AVX512F = 15, HAS_AVX512BW = 21, HAS_AVX512VNNI = 34 };

struct {
    unsigned vendor, type, subtype, features[1];
} __cpu_model;
unsigned __cpu_features2[3];

static unsigned saved_by_system(void)
{
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

__attribute__((constructor(101))) static void look(void)
{
    enum { YMM = 0x6, ZMM = 0xe6 };
    unsigned a, b, c, d, fma;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return;
    unsigned saved = saved_by_system();
    fma = c & bit_FMA;
    if ((saved & YMM) != YMM || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
    __cpu_model.features[0] |= (fma ? 1u << HAS_FMA : 0) | (b & bit_AVX2 ? 1u << HAS_AVX2 : 0);
    if ((saved & ZMM) != ZMM) return;
    __cpu_model.features[0] |=
        (b & bit_AVX512F ? 1u << HAS_AVX512F : 0) | (b & bit_AVX512BW ? 1u << HAS_AVX512BW : 0);
    __cpu_features2[0] |= c & 1u << 11 ? 1u << (HAS_AVX512VNNI - 32) : 0;
}

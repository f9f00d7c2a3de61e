/* SPDX-License-Identifier: MIT
 * machine.c - the real clock and memory behind engine.h's bench_machine. */
#include "bench/engine.h"
#include "core/clock.h"

enum { SPIN_NS = 60000 }; /* the kernel wakes a sleeper late by about this: the rest is spun */

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void pause_until(uint64_t ns)
{
    uint64_t now = clock_raw_ns();
    if (now + SPIN_NS < ns) {
        uint64_t left = ns - now - SPIN_NS; /* the sleep knows no CLOCK_MONOTONIC_RAW: go by the difference */
        struct timespec t = {(time_t)(left / NS_PER_S), (long)(left % NS_PER_S)};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
        return;
    }
    while (clock_raw_ns() < ns) relax();
}

static struct known_u64 rss(void)
{
    return procstat_rss("");
}

static struct known_u64 available(void)
{
    return memory_available("");
}

const struct bench_machine bench_machine_system = {clock_raw_ns, pause_until, rss, available};
struct bench_machine bench_machine = {clock_raw_ns, pause_until, rss, available};

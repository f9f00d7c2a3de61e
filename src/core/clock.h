/* SPDX-License-Identifier: MIT
 * clock.h - time. Two kinds: `struct instant` (nanoseconds of CLOCK_MONOTONIC_RAW, for everything that is
 * not a hot path) and raw ticks of the cheapest trustworthy counter (for scopes), which only become time
 * through pairs of (ticks, instant) taken together. Never sleeps. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct instant {
    uint64_t ns;
};
struct duration {
    int64_t ns;
};

struct instant instant_now(void);
static inline struct duration instant_since(struct instant end, struct instant start)
{
    return (struct duration){(int64_t)(end.ns - start.ns)};
}

uint64_t clock_unix_ns(void); /* wall clock; may step */

/* ---- ticks ---- */

struct clock_source {
    bool tsc;          /* invariant time-stamp counter, accepted by the kernel as its own clock source */
    bool tscp;         /* the ordered read (rdtscp) exists */
    char why_not[120]; /* why the counter is not used: "" when it is */
};

/* Decide which counter to use. `force_fallback`: tests pretend that the counter cannot be trusted. */
void clock_detect(struct clock_source *out, bool force_fallback);

static inline uint64_t clock_raw_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* Processor time so far: CLOCK_THREAD_CPUTIME_ID, CLOCK_PROCESS_CPUTIME_ID. */
static inline uint64_t clock_cpu_ns(clockid_t which)
{
    struct timespec t = {0, 0};
    clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

#if defined(__x86_64__)
static inline uint64_t clock_tsc(void) /* may run ahead of the work before it */
{
    return __builtin_ia32_rdtsc();
}
static inline uint64_t clock_tsc_ordered(void) /* waits until the work before it is done */
{
    unsigned cpu;
    return __builtin_ia32_rdtscp(&cpu);
}
#elif defined(__aarch64__)
static inline uint64_t clock_tsc(void)
{
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
}
static inline uint64_t clock_tsc_ordered(void)
{
    uint64_t v;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(v)::"memory");
    return v;
}
#else
static inline uint64_t clock_tsc(void)
{
    return clock_raw_ns();
}
static inline uint64_t clock_tsc_ordered(void)
{
    return clock_raw_ns();
}
#endif

/* A reading of the counter and of the wall at one moment, best of several bracketed tries. */
struct clock_pair {
    uint64_t ticks;
    uint64_t raw_ns;
    uint64_t unix_ns;
    uint32_t slack_ns; /* the moment is known to within this */
    uint32_t reserved;
};
void clock_pair_take(struct clock_pair *out, const struct clock_source *source);

/* Nanoseconds per tick between two pairs; 0 when they are too close to tell (under 100 us). */
double clock_tick_ns(const struct clock_pair *a, const struct clock_pair *b);

/* What a clock costs and resolves here, measured now. */
struct clock_cost {
    double fast_ns, ordered_ns, raw_ns; /* per read, fastest tenth of many batches */
    double resolution_ns;               /* smallest non-zero difference of two adjacent reads */
};
void clock_measure(struct clock_cost *out, const struct clock_source *source);

#endif

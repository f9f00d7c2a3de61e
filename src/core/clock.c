/* SPDX-License-Identifier: MIT
 * clock.c - see clock.h. */
#include "core/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

struct instant instant_now(void)
{
    return (struct instant){clock_raw_ns()};
}

uint64_t clock_unix_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

#if defined(__x86_64__)
static bool cpu_has_invariant_tsc(bool *tscp)
{
    unsigned a, b, c, d;
    *tscp = __get_cpuid(0x80000001, &a, &b, &c, &d) && (d & (1u << 27));
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
}
#endif

/* The kernel drops the counter as its own clock when it sees cores disagree: believe it. */
static void kernel_clock(char *out, size_t size)
{
    out[0] = 0;
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t n = read(fd, out, size - 1);
    close(fd);
    out[n > 0 ? n : 0] = 0;
    out[strcspn(out, "\n")] = 0;
}

/* That the CPU promises a constant counter is not enough: the kernel watches the counters of all cores
 * against each other and drops the source when they drift, so that its choice is the proof. Else the
 * system clock is used, and why_not says why. */
void clock_detect(struct clock_source *out, bool force_fallback)
{
    memset(out, 0, sizeof *out);
    if (force_fallback) {
        snprintf(out->why_not, sizeof out->why_not, "switched off by TARE_CLOCK_FALLBACK");
        return;
    }
#if defined(__x86_64__)
    if (!cpu_has_invariant_tsc(&out->tscp)) {
        snprintf(out->why_not, sizeof out->why_not,
                 "the CPU does not promise an invariant time-stamp counter");
        return;
    }
    char name[32];
    kernel_clock(name, sizeof name);
    if (strcmp(name, "tsc") != 0) {
        snprintf(out->why_not, sizeof out->why_not,
                 "the kernel uses clock source '%s', not the time-stamp counter", name[0] ? name : "unknown");
        return;
    }
    out->tsc = true;
#elif defined(__aarch64__)
    out->tsc = out->tscp = true; /* the architecture promises a constant, synchronised counter */
    (void)kernel_clock;
#else
    (void)kernel_clock;
    snprintf(out->why_not, sizeof out->why_not, "no cycle counter known for this CPU");
#endif
}

void clock_pair_take(struct clock_pair *out, const struct clock_source *source)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 20; i++) {
        uint64_t before = clock_raw_ns();
        uint64_t ticks = source->tsc ? clock_tsc() : before;
        uint64_t after = clock_raw_ns();
        if (after - before >= best) continue;
        best = after - before;
        out->ticks = ticks;
        out->raw_ns = source->tsc ? before + best / 2 : before;
    }
    out->unix_ns = clock_unix_ns();
    out->slack_ns = best > UINT32_MAX ? UINT32_MAX : (uint32_t)best;
    out->reserved = 0;
}

double clock_tick_ns(const struct clock_pair *a, const struct clock_pair *b)
{
    if (b->ticks <= a->ticks || b->raw_ns < a->raw_ns + 100000) return 0;
    return (double)(b->raw_ns - a->raw_ns) / (double)(b->ticks - a->ticks);
}

/* ---- cost ---- */

enum { BATCHES = 200, READS = 100 };

static uint64_t read_fast(void)
{
    return clock_tsc();
}
static uint64_t read_ordered(void)
{
    return clock_tsc_ordered();
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline __attribute__((always_inline)) double batch_p10(uint64_t (*read)(void))
{
    double ns[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        uint64_t start = clock_raw_ns();
        for (int k = 0; k < READS; k++) {
            uint64_t v = read();
            __asm__ volatile("" : : "r"(v));
        }
        ns[i] = (double)(clock_raw_ns() - start) / READS;
    }
    qsort(ns, BATCHES, sizeof ns[0], by_value);
    return ns[BATCHES / 10];
}

static uint64_t smallest_step(uint64_t (*read)(void))
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 10000; i++) {
        uint64_t a = read(), b = read();
        if (b > a && b - a < least) least = b - a;
    }
    return least;
}

void clock_measure(struct clock_cost *out, const struct clock_source *source)
{
    struct clock_pair first, last;
    clock_pair_take(&first, source);
    out->raw_ns = batch_p10(clock_raw_ns);
    if (source->tsc) {
        out->fast_ns = batch_p10(read_fast);
        out->ordered_ns = source->tscp ? batch_p10(read_ordered) : out->fast_ns;
    } else {
        out->fast_ns = out->ordered_ns = out->raw_ns;
    }
    uint64_t step = smallest_step(source->tsc ? read_fast : clock_raw_ns);
    clock_pair_take(&last, source);
    double tick = source->tsc ? clock_tick_ns(&first, &last) : 1;
    out->resolution_ns = (double)step * tick;
}

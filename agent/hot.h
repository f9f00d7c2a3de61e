/* SPDX-License-Identifier: MIT
 * hot.h - what each allocation that is told goes through, where nothing is out of the ordinary. */
#ifndef AGENT_HOT_H
#define AGENT_HOT_H

#include "agent/agent.h"
#include "trace/memory_block.h"

static inline unsigned set_place(uint64_t address)
{
    return (unsigned)((address >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 48);
}

/* Neighbours in memory are neighbours in the filter: every free looks there, and must not drive the program's own data
 * out of the processor's cache. */
static inline unsigned filter_place(uint64_t address)
{
    return (unsigned)(address >> 9 ^ address >> 25) % FILTER_PLACES;
}

static inline bool filter_may_know(const void *p)
{
    const uint8_t *f = &set_filter[filter_place((uint64_t)(uintptr_t)p)];
    return __builtin_expect(__atomic_load_n(f, __ATOMIC_RELAXED), 0);
}

/* Sixteenths of the time-stamp counter, some 6 ns, are fine enough to keep the order in which threads had one address,
 * and a byte shorter in each record. Other counters are slower. */
#if defined(__x86_64__)
enum { TICK_SHIFT = 4 };
#else
enum { TICK_SHIFT = 0 };
#endif
#define TICKS(of_tsc) ((UINT64_C(1) << (of_tsc)) >> (settings.clock.tsc ? TICK_SHIFT : 0))

static inline uint64_t agent_ticks(void)
{
    return settings.clock.tsc ? clock_tsc() >> TICK_SHIFT : clock_raw_ns();
}

static inline void agent_pair(struct clock_pair *out)
{
    clock_pair_take(out, &settings.clock);
    if (settings.clock.tsc) out->ticks >>= TICK_SHIFT;
}

static inline unsigned slot_home(void)
{
    return self.number ? self.number : (unsigned)((uintptr_t)&self >> 12);
}

static inline struct slot *slot_take(void) /* NULL: all are in use; counted */
{
    struct slot *s = &agent->slots[slot_home() % SLOTS];
    if (__builtin_expect(self.guarded && !__atomic_load_n(&s->lock, __ATOMIC_RELAXED), 1) &&
        !__atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE))
        return s;
    return slot_take_another();
}

static inline void slot_give(struct slot *s)
{
    __atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
}

/* What was packed may be read from now on. */
static inline void slot_publish(struct slot *s)
{
    const uint8_t *from = (const uint8_t *)(s->extent + 1);
    __atomic_store_n(&s->extent->spare[0], (uint64_t)(s->enc.p - from), __ATOMIC_RELEASE);
}

/* ALLOC: time, address, size, stack; FREE: the first two. What a thread did stands behind its BY, in each chunk. */
static inline __attribute__((always_inline)) void slot_block(struct slot *s, enum memory_kind kind,
                                                             const uint64_t *v)
{
    if (__builtin_expect(s->by && s->by == self.number && self.uid == agent->uid && memory_has_room(&s->enc),
                         1)) {
        memory_pack_block(&s->state, &s->enc, kind, v);
        slot_publish(s);
    } else
        slot_block_apart(s, kind, v);
}

/* Now and then a clock pair; false: recording has ended. */
static inline bool slots_time(struct slot *s, uint64_t ticks)
{
    if (__builtin_expect(ticks < __atomic_load_n(&agent->next_pair, __ATOMIC_RELAXED), 1)) return true;
    return slots_time_due(s, ticks);
}

static inline void slots_stalled(struct slot *s, uint64_t ticks)
{
    if (__builtin_expect((uintptr_t)s->enc.p >> 12 != s->page, 0)) slots_stalled_at(s, ticks);
}

#endif

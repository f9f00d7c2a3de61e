/* SPDX-License-Identifier: MIT
 * inline.h - the part of tare.h that records a scope in the program itself. Included by it alone; nothing here is for
 * you to use. */
#ifndef TARE_INLINE_H
#define TARE_INLINE_H

/* A thread's first and slow steps, its weighed calls, and clocks other than the time-stamp counter take these, not the
 * code below; `now` is the end as it was read, 0: read it. */
TARE_API void tare_begin_at_(tare_scope *scope, tare_site *site, const char *sp);
TARE_API void tare_end_at_(tare_scope *scope, uint64_t now);
/* As tare_pause(), of one that waits already, since when is not known: its thread went on without a word. */
TARE_API void tare_paused_(tare_scope *scope);

/* What the code below reads and writes in the library's memory. A library that lays it out otherwise has another
 * number here, never says `run` with ours, and is called for every scope: so does a program built with this header
 * meet any later library, and one built with TARE_NO_INLINE calls it always. */
#ifndef TARE_LAYOUT_
#define TARE_LAYOUT_ 1u
#endif
enum { TARE_PATHS_ = 128, TARE_DEPTH_ = 1000, TARE_OCTAVES_ = 48 };
/* Never 0. */
enum { TARE_RUN_AGGREGATE_ = 1, TARE_RUN_EVENTS_ = 2, TARE_RUN_ORDERED_ = 4 };

struct __attribute__((may_alias)) tare_node_ { /* the hot part of a path in the call tree */
    uint64_t count, total, min, max, batch_next;
    uint64_t others[11];
    uint32_t octave[TARE_OCTAVES_]; /* -> uint64_t[16], in units of 64 bytes from `base`; 0: none yet */
};

struct tare_path_ { /* of a cache: which node a site is under a parent */
    struct tare_node_ *parent, *node;
    uint64_t site, unused;
};

struct tare_frame_ { /* an open scope; sp is 0 while it is being opened or closed */
    const char *sp;
    struct tare_node_ *node;
};

struct __attribute__((aligned(64))) tare_thread_ {
    uint32_t run; /* TARE_LAYOUT_: take the code below. Cleared by another thread at the session's end */
    uint32_t how; /* TARE_RUN_... */
    int32_t coin; /* scopes before one is looked at for weighing */
    uint32_t session;
    uint64_t
        tag; /* of the innermost scope: number of the registration << 32 | its place in `stack` in bytes */
    uint64_t pos, limit; /* next event and end of its chunk, as addresses */
    char *base;
    struct tare_node_
        *late_node; /* the last reading: it gets into its histogram with the next. NULL: none, 0 ticks */
    uint64_t late_ticks;
    struct tare_path_ path[TARE_PATHS_];
    struct tare_frame_ stack[TARE_DEPTH_]; /* [0]: no scope */
};

extern TARE_API __thread struct tare_thread_ *tare_self_ __attribute__((tls_model("initial-exec")));

#define TARE_ALWAYS_ static inline __attribute__((always_inline))
#define TARE_LIKELY_(x) __builtin_expect(!!(x), 1)
#define TARE_BARRIER_() __atomic_signal_fence(__ATOMIC_SEQ_CST)

TARE_ALWAYS_ struct tare_path_ *tare_path_of_(struct tare_thread_ *t, const struct tare_node_ *parent,
                                              uint64_t site)
{
    return &t->path[(((uint64_t)parent >> 6) + site) % TARE_PATHS_];
}

TARE_ALWAYS_ struct tare_frame_ *tare_frame_of_(struct tare_thread_ *t, uint64_t tag)
{
    return (struct tare_frame_ *)(void *)((char *)t->stack + (uint32_t)tag);
}

#if defined(__x86_64__) && defined(__LP64__)
TARE_ALWAYS_ const char *tare_sp_(void)
{
    const char *sp;
    __asm__ volatile("movq %%rsp, %0" : "=r"(sp));
    return sp;
}

TARE_ALWAYS_ uint64_t tare_ticks_(uint32_t ordered)
{
    uint64_t low, high;
    if (ordered)
        __asm__ volatile("rdtscp" : "=a"(low), "=d"(high) : : "rcx", "memory");
    else
        __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return high << 32 | low;
}

/* The place of the next event; 0: the chunk is full. One instruction takes it, so that a signal handler gets another. A
 * handler that went on to the next chunk meanwhile changed the limit: the place may then be beyond the end of the chunk
 * before, and is left alone. */
TARE_ALWAYS_ uint64_t tare_event_(struct tare_thread_ *t)
{
    volatile uint64_t *end = &t->limit;
    uint64_t at = 16, limit = *end;
    __asm__ volatile("xaddq %0, %1" : "+r"(at), "+m"(t->pos));
    return TARE_LIKELY_(at < limit && *end == limit) ? at : 0;
}

TARE_ALWAYS_ void tare_publish_(uint64_t event, uint64_t what, uint64_t ticks)
{
    uint64_t *e = (uint64_t *)event;
    e[1] = what;
    __atomic_store_n(e, ticks, __ATOMIC_RELEASE); /* what is not yet whole reads as 0 */
}

/* The begin of a scope where nothing is out of the ordinary; else 0, and nothing is done. */
TARE_ALWAYS_ int tare_begin_fast_(struct tare_thread_ *t, tare_scope *scope, tare_site *site, const char *sp)
{
    uint32_t how = t->how;
    uint64_t tag = t->tag, id = __atomic_load_n(&site->id, __ATOMIC_RELAXED), event = 0, now;
    struct tare_frame_ *f = tare_frame_of_(t, tag);
    struct tare_node_ *node = NULL;
    if (!TARE_LIKELY_(__atomic_load_n(&t->run, __ATOMIC_RELAXED) == TARE_LAYOUT_ && sp <= f->sp)) return 0;
    if (how & TARE_RUN_AGGREGATE_) {
        struct tare_path_ *c = tare_path_of_(t, f->node, id);
        if (!TARE_LIKELY_(c->parent == f->node && c->site == id)) return 0;
        if (!TARE_LIKELY_(--t->coin >= 0)) return 0;
        node = c->node;
    } else if (!TARE_LIKELY_((uint32_t)(id >> 32) == t->session &&
                             (uint32_t)tag < (TARE_DEPTH_ - 1) * sizeof *f)) {
        return 0;
    }
    if (how & TARE_RUN_EVENTS_) {
        event = tare_event_(t);
        if (!event) {
            if (how & TARE_RUN_AGGREGATE_) t->coin++;
            return 0;
        }
    }
    tag += sizeof *f;
    t->tag = tag;
    TARE_BARRIER_();
    f[1].sp = sp;
    f[1].node = node;
    scope->private_[0] = tag;
    scope->private_[2] = (uint64_t)t;
    scope->private_[4] = how;
    now = tare_ticks_(0);
    scope->private_[1] = now;
    if (how & TARE_RUN_EVENTS_) tare_publish_(event, 1 | id << 32, now);
    return 1;
}

/* The end of a scope, the same way. Else 0, and `now` is the end as read, or 0. What a processor waits for at a clock
 * read is as little as can be: the read comes first, with what the begin left in registers; `self` is only compared.
 * Into the histogram goes the reading before this one. An address that hangs on a clock read just made would stall
 * the next read; one call later it is known early. */
TARE_ALWAYS_ int tare_end_fast_(struct tare_thread_ *self, const tare_scope *scope, uint64_t *now)
{
    uint32_t how = (uint32_t)scope->private_[4], slab = 0, shift;
    uint64_t tag = scope->private_[0], ticks, late = 0, event = 0;
    struct tare_thread_ *t = (struct tare_thread_ *)scope->private_[2];
    struct tare_frame_ *f;
    struct tare_node_ *n;
    *now = 0;
    if (!TARE_LIKELY_(how)) return 0; /* tare_begin_fast_ did not begin it */
    *now = tare_ticks_(how & TARE_RUN_ORDERED_);
    if (!TARE_LIKELY_(t == self && __atomic_load_n(&t->run, __ATOMIC_RELAXED) == TARE_LAYOUT_ &&
                      t->tag == tag))
        return 0;
    f = tare_frame_of_(t, tag);
    ticks = *now - scope->private_[1];
    n = f->node;
    if (how & TARE_RUN_AGGREGATE_) {
        if (!TARE_LIKELY_(ticks >= n->min && ticks <= n->max && n->count + 1 != n->batch_next)) return 0;
        late = t->late_ticks;
        shift = (63u ^ (uint32_t)__builtin_clzll(late | 1)) - 4u;
        if (!TARE_LIKELY_(shift < TARE_OCTAVES_ - 1)) return 0; /* under 16 ticks, or over all measure */
        late >>= shift;
        slab = t->late_node->octave[(uint64_t)shift + 1];
        if (!TARE_LIKELY_(slab)) return 0;
    }
    if (how & TARE_RUN_EVENTS_) {
        event = tare_event_(t);
        if (!event) return 0;
    }
    if (how & TARE_RUN_AGGREGATE_) {
        n->count++;
        n->total += ticks;
        t->late_node = n;
        t->late_ticks = ticks;
        ++((uint64_t *)(void *)(t->base + (uint64_t)slab * 64))[late - 16];
    }
    if (how & TARE_RUN_EVENTS_) tare_publish_(event, 2, *now);
    f->sp = NULL;
    TARE_BARRIER_();
    t->tag = tag - sizeof *f;
    return 1;
}
#else
#define TARE_NO_INLINE
#endif

/* Calls get a copy, so that a scope that needs none can be in registers. */
TARE_ALWAYS_ void tare_record_(tare_scope *scope, tare_site *site)
{
#ifdef TARE_NO_INLINE
    tare_begin(scope, site);
#else
    tare_scope copy;
    const char *sp = tare_sp_();
    if (TARE_LIKELY_(tare_begin_fast_(tare_self_, scope, site, sp))) return;
    tare_begin_at_(&copy, site, sp);
    scope->private_[0] = copy.private_[0];
    scope->private_[1] = copy.private_[1];
    scope->private_[2] = scope->private_[4] = 0;
#endif
}

TARE_ALWAYS_ void tare_enter_(tare_scope *scope, tare_site *site)
{
    scope->private_[0] = 0;
#ifndef TARE_NO_INLINE
    scope->private_[1] = scope->private_[2] = scope->private_[4] = 0;
#endif
    if (TARE_ON_) tare_record_(scope, site);
}

TARE_ALWAYS_ void tare_leave_(tare_scope *scope)
{
    if (TARE_LIKELY_(!scope->private_[0])) return;
#ifdef TARE_NO_INLINE
    tare_end(scope);
#else
    tare_scope copy;
    uint64_t now;
    if (TARE_LIKELY_(tare_end_fast_(tare_self_, scope, &now))) return;
    copy.private_[0] = scope->private_[0];
    copy.private_[1] = scope->private_[1];
    tare_end_at_(&copy, now);
#endif
}

#endif

/* SPDX-License-Identifier: MIT
 * scope.c - begin, end, count, mark: all that tare_begin_fast_ and tare_end_fast_ of tare.h, which the program has
 * inlined, leave to the library. Nothing here locks, allocates or makes a system call; the `_slow` functions may,
 * behind `busy`, which makes the scopes of a signal handler that lands there count as lost.
 *
 * Signal handlers may begin and end scopes anywhere. Event slots are reserved by one instruction; a node is
 * only ever updated by the scope that is at it, because hot.tag moves back after the update; and a frame that is
 * being opened or closed has no sp: what begins there is lost, never put under a path of old. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include "trace/extent.h"
#include "trace/recorder.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* More of what inlined code counts on (recorder.h has the rest). */
static_assert(offsetof(struct tare_node_, batch_next) == offsetof(struct node, batch_next), "layout 1: node");
static_assert((int)TARE_RUN_AGGREGATE_ == (int)TARE_AGGREGATE && (int)TARE_RUN_EVENTS_ == (int)TARE_EVENTS,
              "layout 1: modes");

uint32_t tare_recording;

#ifdef TARE_NO_INLINE /* no fast path for this processor: the general one does it all */
#define begin_fast(scope, site, sp) false
#define end_fast(scope, now) false
#else
#define begin_fast(scope, site, sp) tare_begin_fast_(self_hot, scope, site, sp)
#define end_fast(scope, now) tare_end_fast_(self_hot, scope, now)
#endif

/* ---- the event log ---- */

/* Add and return the old value in one instruction: atomic against a signal handler, not against threads. */
static inline uint64_t bump(uint64_t *p, uint64_t by)
{
#if defined(__x86_64__)
    __asm__ volatile("xaddq %0, %1" : "+r"(by), "+m"(*p) : : "memory");
    return by;
#else
    return __atomic_fetch_add(p, by, __ATOMIC_RELAXED);
#endif
}

static inline void publish(struct raw_event *e, uint64_t what, uint64_t ticks)
{
    e->what = what;
    __atomic_store_n(&e->ticks, ticks, __ATOMIC_RELEASE); /* what is not yet whole reads as 0 */
}

/* As tare_event_ in inline.h; 0: no room, or the chunk was changed by a signal handler meanwhile. */
static inline uint64_t place_of(struct thread *t, uint64_t bytes)
{
    volatile uint64_t *end = &t->hot.limit;
    uint64_t limit = *end, at = bump(&t->hot.pos, bytes);
    if (likely(at + bytes <= limit && *end == limit)) return at;
    if (at < limit && *end == limit) publish((struct raw_event *)at, RAW_UNUSED, 1);
    return 0;
}

static __attribute__((noinline)) struct raw_event *reserve_slow(struct thread *t, uint64_t bytes)
{
    bool ok = false;
    if (!t->busy) {
        t->busy = 1;
        ok = thread_next_chunk(t);
        t->busy = 0;
    }
    uint64_t at = ok ? place_of(t, bytes) : 0;
    if (!at) thread_lost(t, 1);
    return (struct raw_event *)at;
}

static inline struct raw_event *reserve(struct thread *t, unsigned slots)
{
    uint64_t bytes = slots * sizeof(struct raw_event), at = place_of(t, bytes);
    return likely(at) ? (struct raw_event *)at : reserve_slow(t, bytes);
}

/* ---- slow paths ---- */

static void frame_close(struct thread *t, struct tare_frame_ *f)
{
    f->sp = NULL;
    barrier();
    t->hot.tag -= sizeof *f;
}

/* Frames deeper than `depth` are gone without an end: longjmp, or a forgotten tare_end. `now` must not be
 * later than the event that showed it, or a reader, going by time, would close the wrong scope. */
static void unwind_at(struct thread *t, uint32_t depth, uint64_t now)
{
    while (thread_depth(t) > depth) {
        struct node *n = thread_at(t);
        if (t->skipping && t->weighed == thread_depth(t)) weigh_cancel(t);
        if (n) {
            n->abandoned++;
            n->flags &= ~(uint32_t)NODE_IN_PAIR;
        }
        t->head->abandoned++;
        if (t->mode & TARE_EVENTS) {
            struct raw_event *e = reserve(t, 1);
            if (e) publish(e, raw_what(RAW_END, RAW_FLAG_ABANDONED, 0, 0, 0), now);
        }
        frame_close(t, &t->hot.stack[thread_depth(t)]);
    }
}

static void unwind(struct thread *t, uint32_t depth)
{
    unwind_at(t, depth, ticks_begin(t));
}

/* A signal handler on a stack of its own: where that lies says nothing about the frames below it. */
static bool on_signal_stack(void)
{
    stack_t now;
    return sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_ONSTACK);
}

/* How deep the live frames go, seen from a begin at `sp`. Another stack far away tells nothing. */
static uint32_t live_depth(const struct thread *t, const char *sp)
{
    const struct tare_frame_ *f = t->hot.stack;
    uint32_t d = thread_depth(t);
    if (on_signal_stack()) return d;
    while (d > 0 && sp > f[d].sp && (uintptr_t)sp - (uintptr_t)f[d].sp < (16u << 20)) d--;
    return d;
}

static __attribute__((noinline)) struct thread *begin_slow(struct thread *t, const char *sp)
{
    if (!thread_epoch(t)) return thread_get(); /* new here: the thread, the process or the session */
    if (!t->skipping) {                        /* a signal handler that landed where weighing is switched */
        thread_lost(t, 1);
        return NULL;
    }
    if (unlikely(sp > t->hot.stack[t->weighed].sp))
        unwind(t, live_depth(t, sp)); /* perhaps the weighed call is gone */
    if (thread_runs(t)) return t;
    t->skipped++;
    return NULL;
}

/* A node that awaits the partner of a weighed call stays out of the cache: it must come by here. */
static __attribute__((noinline)) struct node *find_slow(struct thread *t, tare_site *site,
                                                        struct tare_path_ *c)
{
    struct node *n = NULL, *parent = thread_at(t);
    if (!t->busy) {
        t->busy = 1;
        uint64_t id = site_id(site);
        if (id) n = thread_node(t, parent, (uint32_t)id, site->kind);
        if (n && !(n->flags & NODE_AWAITS_PAIR)) *c = (struct tare_path_){(void *)parent, (void *)n, id, 0};
        t->busy = 0;
    }
    if (!n) thread_lost(t, 1);
    return n;
}

static inline struct node *find(struct thread *t, tare_site *site)
{
    struct tare_node_ *parent = (void *)thread_at(t);
    uint64_t id = __atomic_load_n(&site->id, __ATOMIC_RELAXED);
    struct tare_path_ *c = tare_path_of_(&t->hot, parent, id);
    if (likely(c->parent == parent && c->site == id)) return (struct node *)(void *)c->node;
    return find_slow(t, site, c);
}

static __attribute__((noinline)) uint32_t log_site_slow(struct thread *t, tare_site *site)
{
    uint64_t id = 0;
    if (!t->busy) { /* a signal handler must not wait for the lock that the code below it holds */
        t->busy = 1;
        id = site_id(site);
        t->busy = 0;
    }
    if (!id) thread_lost(t, 1);
    return (uint32_t)id;
}

/* The site's index in this session's table, or 0 (counted as lost). */
static inline uint32_t log_site(struct thread *t, tare_site *site)
{
    uint64_t id = __atomic_load_n(&site->id, __ATOMIC_RELAXED);
    if (unlikely((uint32_t)(id >> 32) != t->hot.session)) return log_site_slow(t, site);
    return (uint32_t)id;
}

/* ---- begin and end ---- */

/* Where a scope begins. `sp` tells frames that are gone (longjmp); a free scope has none and is nobody's proof. */
struct place {
    const char *sp;
    bool resumed;     /* goes on: neither weighed nor a partner of one that was */
    uint64_t goes_on; /* what the event log says of that, with the pause it ends; 0: nothing */
};

/* Whether this call of n is to be weighed: all scopes in it left out. The coin may have fallen in tare_begin_fast_. */
static bool choose_weighing(struct thread *t, struct node *n, bool resumed)
{
    bool fell = t->hot.coin < 0 || --t->hot.coin < 0;
    if (fell) weigh_coin(t);
    if (resumed) return false;
    bool chosen = fell && weigh_wanted(t, n);
    if (n->flags & NODE_AWAITS_PAIR) weigh_pair_begin(t, n);
    return chosen;
}

/* Ready to open a frame at `sp`, those that are gone closed; or NULL. */
static struct thread *begin_ready(struct thread *t, const char *sp)
{
    if (!thread_runs(t) && !(t = begin_slow(t, sp))) return NULL;
    const char *top = t->hot.stack[thread_depth(t)].sp;
    if (top && sp > top) unwind(t, live_depth(t, sp));
    if (top && thread_depth(t) + 1 < DEPTH_MAX) return t;
    thread_lost(t, 1);
    return NULL;
}

/* The general way to begin: everything that can fail comes first, then the frame is opened, the clock is read last. */
static void begin(struct scope *s, tare_site *site, struct place at)
{
    s->tag = 0;
    struct thread *t = begin_ready(self_thread(), at.sp);
    if (!t) return;
    struct node *n = t->mode & TARE_AGGREGATE ? find(t, site) : NULL;
    uint32_t index = n ? n->site : 0;
    if (!(t->mode & TARE_AGGREGATE)) index = log_site(t, site);
    if (!index) return;
    bool weighed = n && choose_weighing(t, n, at.resumed);
    /* Before the depth moves on: a chunk that starts with this event must not count its scope as open. */
    struct raw_event *e = t->mode & TARE_EVENTS ? reserve(t, 1 + (at.goes_on != 0)) : NULL;
    struct tare_frame_ *f = &t->hot.stack[thread_depth(t) + 1];
    uint64_t tag = t->hot.tag += sizeof *f;
    barrier();
    f->sp = at.sp ? at.sp : STACK_TOP;
    f->node = (void *)n;
    s->tag = tag;
    s->how = 0;
    if (weighed) weigh_begin(t);
    uint64_t now = ticks_begin(t);
    s->start = now;
    if (e && at.goes_on) publish(e++, at.goes_on, now);
    if (e) publish(e, raw_what(RAW_BEGIN, weighed ? RAW_FLAG_WEIGHED : 0, 0, 0, index), now);
}

void tare_begin_at_(tare_scope *scope, tare_site *site, const char *sp)
{
    begin((struct scope *)(void *)scope, site, (struct place){.sp = sp});
}

/* The stack pointer of the caller, as its inlined scopes see it. */
void tare_begin(tare_scope *scope, tare_site *site)
{
    const char *sp = __builtin_dwarf_cfa();
    if (!begin_fast(scope, site, sp)) tare_begin_at_(scope, site, sp);
}

void tare_open(tare_scope *scope, tare_site *site)
{
    struct scope *s = (struct scope *)(void *)scope;
    s->site = site;
    s->held = s->how = 0;
    begin(s, site, (struct place){.sp = NULL});
}

/* True: s is now the innermost scope of t. False: its end belongs to another thread, process or session. */
static bool end_ready(struct thread *t, const struct scope *s, uint64_t now)
{
    uint64_t tag = s->tag;
    uint32_t depth = (uint32_t)tag / sizeof(struct tare_frame_);
    if (!tag) return false; /* never recorded: left out, lost, or ended before */
    if (tag >> 32 != thread_epoch(t) || !thread_epoch(t) || depth > thread_depth(t)) {
        if (t->head) t->head->foreign++;
        return false;
    }
    if (t->skipping && t->weighed > depth) weigh_cancel(t);
    if (thread_depth(t) > depth) unwind_at(t, depth, now);
    return true;
}

static __attribute__((noinline)) uint32_t open_octave(struct thread *t, struct node *n, unsigned octave)
{
    if (t->busy) return 0; /* this reading misses from the histogram, not from count and total */
    t->busy = 1;
    void *slab = thread_arena(t, SUBS * sizeof(uint64_t));
    uint32_t ref = slab ? ref_of(t, slab) : 0;
    if (ref) __atomic_store_n(&n->octave[octave], ref, __ATOMIC_RELEASE);
    t->busy = 0;
    return ref;
}

/* Means of consecutive calls, at most BATCHES_MAX of them: what the interval of the mean rests on. */
static __attribute__((noinline)) void close_batch(struct thread *t, struct node *n)
{
    if (!t->busy) { /* a good moment to note the time: rare, and off the clock */
        t->busy = 1;
        session_pair();
        t->busy = 0;
    }
    if (n->n_batches == BATCHES_MAX) {
        for (unsigned i = 0; i < BATCHES_MAX / 2; i++) n->batch[i] = n->batch[2 * i] + n->batch[2 * i + 1];
        n->n_batches = BATCHES_MAX / 2;
        n->batch_next = n->count + n->batch_size; /* the running batch is half done at the new size */
        n->batch_size *= 2;
        return;
    }
    n->batch[n->n_batches++] = n->total - n->batch_start;
    n->batch_start = n->total;
    n->batch_next = n->count + n->batch_size;
}

/* Into the histogram goes the reading before this one: see tare_bucket_. The last reading of a thread is put in by
 * scope_flush(), or misses from the histogram after a kill. */
static uint64_t *late_bucket(struct thread *t, struct node *next, uint64_t next_ticks)
{
    struct node *n = (struct node *)(void *)t->hot.late_node;
    uint64_t ticks = t->hot.late_ticks;
    t->hot.late_node = (void *)next;
    t->hot.late_ticks = next_ticks;
    if (!n) return NULL;
    unsigned octave = bucket_octave(ticks);
    uint32_t ref = mapped_ref(&n->octave[octave]);
    if (!ref) ref = open_octave(t, n, octave);
    if (!ref) return NULL;
    uint64_t *slab = (uint64_t *)(void *)node_at(t, ref);
    return &slab[bucket_sub(ticks, octave)];
}

/* A thread may end while another stops the session and reads this. */
void scope_flush(struct thread *t)
{
    uint64_t *bucket = t->hot.late_node ? late_bucket(t, NULL, 0) : NULL;
    if (bucket) __atomic_fetch_add(bucket, 1, __ATOMIC_RELAXED);
}

static void node_record(struct thread *t, struct node *n, uint64_t ticks)
{
    n->count++;
    n->total += ticks;
    if (ticks < n->min) n->min = ticks;
    if (ticks > n->max) n->max = ticks;
    uint64_t *bucket = late_bucket(t, n, ticks);
    if (bucket) ++*bucket;
    if (n->count == n->batch_next) close_batch(t, n);
    if (n->flags & NODE_IN_PAIR) weigh_pair_end(t, n, ticks);
}

/* how: what the event log says of it: that it ends, or that it waits. */
static void pop(struct thread *t, struct scope *s, uint64_t now, uint64_t how)
{
    if (t->mode & TARE_EVENTS) {
        struct raw_event *e = reserve(t, 1);
        if (e) publish(e, how, now);
    }
    frame_close(t, &t->hot.stack[thread_depth(t)]);
    s->tag = 0;
}

void tare_end_at_(tare_scope *scope, uint64_t now)
{
    struct scope *s = (struct scope *)(void *)scope;
    struct thread *t = self_thread();
    if (!now) now = ticks_end(t);
    if (!end_ready(t, s, now)) return;
    uint64_t ticks = now > s->start ? now - s->start : 0;
    struct node *n = thread_at(t);
    if (n && t->skipping)
        weigh_end(t, n, ticks);
    else if (n)
        node_record(t, n, ticks);
    pop(t, s, now, raw_what(RAW_END, 0, 0, 0, 0));
}

void tare_end(tare_scope *scope)
{
    uint64_t now = 0;
    if (scope->private_[0] && end_fast(scope, &now))
        scope->private_[0] = 0; /* the program has it still, and may end it twice */
    else
        tare_end_at_(scope, now);
}

/* ---- scopes that wait ---- */

static void pause_scope(tare_scope *scope, unsigned flags)
{
    struct scope *s = (struct scope *)(void *)scope;
    struct thread *t = self_thread();
    uint64_t now = ticks_end(t);
    if (!end_ready(t, s, now)) return;
    if (t->skipping) weigh_cancel(t); /* what was left out of half a call says nothing */
    struct node *n = thread_at(t);
    if (n) n->flags &= ~(uint32_t)NODE_IN_PAIR;
    s->held = now > s->start ? now - s->start : 0;
    if (!++t->pauses) t->pauses = 1;
    pop(t, s, now, raw_what(RAW_END, RAW_FLAG_PAUSED | flags, 0, 0, t->pauses));
    s->how = (uint64_t)thread_epoch(t) << 32 | t->pauses;
}

void tare_pause(tare_scope *scope)
{
    pause_scope(scope, 0);
}

void tare_paused_(tare_scope *scope)
{
    pause_scope(scope, RAW_FLAG_WAITED);
}

void tare_resume(tare_scope *scope, int wait_counts)
{
    struct scope *s = (struct scope *)(void *)scope;
    struct thread *t = self_thread();
    uint64_t began = s->start, goes_on = 0;
    if (t->skipping) weigh_cancel(t);
    if (s->how && s->how >> 32 == thread_epoch(t)) /* else its pause is in another thread's record */
        goes_on = raw_what(RAW_RESUME, wait_counts ? RAW_FLAG_WAITED : 0, 0, 0, (uint32_t)s->how);
    s->how = 0;
    begin(s, s->site, (struct place){NULL, true, goes_on});
    if (s->tag) s->start = wait_counts ? began : s->start - s->held;
}

/* ---- counters and marks ---- */

static inline struct thread *recording_thread(void)
{
    struct thread *t = self_thread();
    return likely(thread_epoch(t) != 0) ? t : thread_get();
}

/* One more of `site` below the running scope: its node, where paths are kept, and the number by which the event log
 * names it. 0: nothing is to be logged, or it is lost. */
static inline uint32_t count_site(struct thread *t, tare_site *site, struct node **node)
{
    uint32_t index;
    if (likely(t->mode & TARE_AGGREGATE)) {
        struct node *n = *node = find(t, site);
        if (unlikely(!n)) return 0;
        n->count++;
        index = n->site;
    } else {
        index = log_site(t, site);
    }
    return t->mode & TARE_EVENTS ? index : 0;
}

/* Room for an event of several slots, or NULL. What it is comes first: so a reader steps over the other slots even if
 * the event is never published. */
static inline struct raw_event *reserve_long(struct thread *t, uint64_t what, unsigned extra)
{
    struct raw_event *e = reserve(t, 1 + extra);
    if (!e) return NULL;
    e->what = what;
    barrier();
    return e;
}

void tare_site_count(tare_site *site, int64_t value)
{
    struct thread *t = recording_thread();
    struct node *n = NULL;
    uint32_t index = t ? count_site(t, site, &n) : 0;
    if (n) {
        n->total += (uint64_t)value;
        if (value < (int64_t)n->min) n->min = (uint64_t)value;
        if (value > (int64_t)n->max) n->max = (uint64_t)value;
    }
    uint64_t what = raw_what(RAW_COUNT, 0, 1, 0, index);
    struct raw_event *e = index ? reserve_long(t, what, 1) : NULL;
    if (!e) return;
    e[1] = (struct raw_event){1, (uint64_t)value};
    publish(e, what, ticks_begin(t));
}

/* The text is made first, since its length says how many slots the event takes; it is cut at TARE_MARK_MAX
 * and needs no NUL. A thread that keeps paths only does not format it at all. */
void tare_site_mark(tare_site *site, const char *format, ...)
{
    struct thread *t = recording_thread();
    struct node *n;
    uint32_t index = t ? count_site(t, site, &n) : 0;
    if (!index) return;
    char text[TARE_MARK_MAX + 1];
    va_list ap;
    va_start(ap, format);
    int len = vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (len < 0) len = 0;
    if (len > TARE_MARK_MAX) len = TARE_MARK_MAX;
    unsigned extra = ((unsigned)len + 7) / 8; /* eight bytes a slot: its first word says "written" */
    uint64_t what = raw_what(RAW_MARK, 0, extra, (unsigned)len, index);
    struct raw_event *e = reserve_long(t, what, extra);
    if (!e) return;
    for (unsigned i = 0; i < extra; i++) {
        uint64_t word = 0;
        __builtin_memcpy(&word, text + i * 8, (size_t)len - i * 8 < 8 ? (size_t)len - i * 8 : 8);
        e[1 + i] = (struct raw_event){1, word};
    }
    publish(e, what, ticks_begin(t));
}

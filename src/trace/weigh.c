/* SPDX-License-Identifier: MIT
 * weigh.c - what a scope costs, found two ways.
 *
 * At start-up: scopes around a little known work, through the very code that the macros put into the program. That
 * number is a first stone only: elsewhere a scope costs more or less (caches, pipelines), and no constant fits.
 *
 * In situ: now and then (a coin per call, one in 64) everything a scope calls is left out of the record, and
 * the next call of the same path is kept as its partner. The difference of the two over the number of scopes
 * left out is what a scope costs right there. The pairs go into the trace; calltree.c makes the estimate. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "trace/extent.h"
#include "trace/recorder.h"

/* ---- in situ ---- */

enum { CALLS_BEFORE = 32, LONG_TICKS = 1 << 25, PAIRS_BEFORE_JUDGING = 16 };

void weigh_coin(struct thread *t)
{
    uint32_t one_in = session.options.weigh_one_in;
    int32_t coin = one_in ? (int32_t)(rng_next(&t->rng) % (2 * (uint64_t)one_in - 1)) : INT32_MAX;
    t->thrown += (uint64_t)((int64_t)coin - t->hot.coin);
    t->hot.coin = coin;
}

static bool has_scopes(const struct thread *t, const struct node *n)
{
    for (uint32_t ref = n->child; ref;) {
        const struct node *c = node_at(t, ref);
        if (c->kind == TARE_SITE_SCOPE) return true;
        ref = c->next;
    }
    return false;
}

/* Long calls are left alone: the few scopes in them weigh nothing, and much of the record would be missing. */
bool weigh_wanted(struct thread *t, const struct node *n)
{
    uint64_t count = __atomic_load_n(&n->count, __ATOMIC_RELAXED); /* once: its page may go at any moment */
    return session.options.weigh_one_in && count >= CALLS_BEFORE && !(n->flags & NODE_NOT_WORTH) &&
           n->total / count < LONG_TICKS && has_scopes(t, n);
}

/* Neither `run` nor `skipping`: a signal handler that lands there counts its scopes as lost. */
void weigh_begin(struct thread *t)
{
    t->weighed = thread_depth(t);
    t->skipped = 0;
    __atomic_store_n(&t->hot.run, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    t->skipping = 1;
}

/* The session may end meanwhile in another thread, which clears `epoch`, then `run`: ours is undone then. */
void weigh_cancel(struct thread *t)
{
    t->skipping = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&t->hot.run, t->runs, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&t->epoch, __ATOMIC_SEQ_CST)) __atomic_store_n(&t->hot.run, 0, __ATOMIC_RELAXED);
}

void weigh_end(struct thread *t, struct node *n, uint64_t ticks)
{
    weigh_cancel(t);
    n->off_count++;
    n->off_total += ticks;
    n->off_scopes += t->skipped;
    if (!t->skipped) return;
    if (t->pair_node) t->pair_node->flags &= ~(uint32_t)(NODE_AWAITS_PAIR | NODE_IN_PAIR);
    t->pair_node = n;
    t->pair_off = ticks;
    n->flags |= NODE_AWAITS_PAIR;
    struct tare_node_ *parent = t->hot.stack[thread_depth(t) - 1].node;
    struct tare_path_ *c = tare_path_of_(&t->hot, parent, (uint64_t)t->hot.session << 32 | n->site);
    if ((void *)c->node == n) *c = (struct tare_path_){NULL, NULL, 0, 0};
}

static uint64_t scopes_begun(const struct thread *t)
{
    return t->thrown - (uint64_t)(int64_t)t->hot.coin;
}

void weigh_pair_begin(struct thread *t, struct node *n)
{
    n->flags &= ~(uint32_t)NODE_AWAITS_PAIR;
    if (t->pair_node != n) return;
    n->flags |= NODE_IN_PAIR;
    t->pair_scopes = scopes_begun(t);
}

static uint32_t clip(uint64_t v)
{
    return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static struct weigh_pairs *pairs_of(struct thread *t, struct node *n)
{
    uint32_t ref = mapped_ref(&n->pairs);
    if (!ref && !t->busy) {
        t->busy = 1;
        void *p = thread_arena(t, sizeof(struct weigh_pairs));
        if (p) __atomic_store_n(&n->pairs, ref = ref_of(t, p), __ATOMIC_RELEASE);
        t->busy = 0;
    }
    return ref ? (struct weigh_pairs *)(void *)node_at(t, ref) : NULL;
}

/* Scopes that make up under a thousandth of their parent need no weighing: stop leaving them out. */
static void judge_worth(const struct weigh_pairs *p, struct node *n)
{
    const struct process_info *me = &session.calibrated;
    uint64_t on = 0, scopes = 0, cost = ((uint64_t)me->inside.p50 + me->outside.p50) / 256;
    for (unsigned i = 0; i < PAIRS_BEFORE_JUDGING; i++) {
        on += p->pair[i].on;
        scopes += p->pair[i].scopes;
    }
    if (scopes * cost < on / 1000) n->flags |= NODE_NOT_WORTH;
}

/* Keeps a fair sample of WEIGH_PAIRS of all pairs seen. */
void weigh_pair_end(struct thread *t, struct node *n, uint64_t ticks)
{
    n->flags &= ~(uint32_t)NODE_IN_PAIR;
    if (t->pair_node != n) return;
    t->pair_node = NULL;
    struct weigh_pairs *p = pairs_of(t, n);
    if (!p) return;
    uint64_t scopes = scopes_begun(t) - t->pair_scopes;
    uint64_t at = p->seen < WEIGH_PAIRS ? p->seen : rng_next(&t->rng) % ((uint64_t)p->seen + 1);
    if (at < WEIGH_PAIRS) p->pair[at] = (struct weigh_pair){clip(t->pair_off), clip(ticks), clip(scopes)};
    if (p->seen < UINT32_MAX) p->seen++;
    if (p->seen == PAIRS_BEFORE_JUDGING) judge_worth(p, n);
}

/* ---- at start-up ---- */

enum { ROUNDS = 20, SCOPES = 64, WORK_STEPS = 64 };

/* A thread state with room for its tree and its events, that no reader will ever see. */
struct scratch {
    struct thread thread;
    struct node *site; /* of the one that is weighed */
    _Alignas(LIVE_ALIGN) char tree[16 << 10];
    struct raw_event events[2 * SCOPES + 2];
};

struct readings {
    uint64_t inside[ROUNDS], outside[ROUNDS], skipped[ROUNDS];
};

/* As slot_ready() and tree_open() would make it, but in memory of its own: a root, one node below it, and the path to
 * that node in the cache, so that the weighed scope takes the way that most scopes take. */
static void scratch_open(struct scratch *w, tare_site *site, const tare_options *options)
{
    struct thread *t = &w->thread;
    t->mode = options->mode;
    t->epoch = 1;
    t->hot.tag = (uint64_t)1 << 32;
    t->clock = session_clock();
    t->hot.session = (uint32_t)(site->id >> 32);
    t->hot.coin = INT32_MAX;
    rng_seed(&t->rng, 1);
    t->hot.base = w->tree;
    struct node *root = (struct node *)(void *)(w->tree + LIVE_ALIGN);
    struct node *n = (struct node *)(void *)((char *)(root + 1));
    n->min = UINT64_MAX;
    n->batch_next = n->batch_size = 1;
    n->site = 1;
    w->site = n;
    t->arena = (char *)(n + 1);
    t->arena_end = w->tree + sizeof w->tree;
    t->hot.stack[0] = (struct tare_frame_){STACK_TOP, t->mode & TARE_AGGREGATE ? (void *)root : NULL};
    *tare_path_of_(&t->hot, (void *)root, site->id) =
        (struct tare_path_){(void *)root, (void *)n, site->id, 0};
    t->hot.how = how_word(t->mode, t->clock);
    t->hot.run = t->runs = run_word(t->clock);
}

/* A short stretch of work in which nothing overlaps: each step needs the one before. Around an empty body the
 * clock reads would wait for each other, and a scope would seem to hold more of its own cost than it does. */
static inline void known_work(uint64_t *v)
{
    uint64_t x = *v;
    for (unsigned i = 0; i < WORK_STEPS; i++) {
        x *= UINT64_C(0x9E3779B97F4A7C15);
        __asm__ volatile("" : "+r"(x));
    }
    *v = x;
}

static uint64_t time_work(const struct thread *t, uint64_t *v)
{
    uint64_t start = ticks_end(t);
    for (unsigned k = 0; k < SCOPES; k++) known_work(v);
    return ticks_end(t) - start;
}

static uint64_t time_scoped_work(const struct thread *t, tare_site *site, uint64_t *v)
{
    uint64_t start = ticks_end(t);
    for (unsigned k = 0; k < SCOPES; k++) {
        tare_scope s;
        tare_record_(&s, site);
        known_work(v);
        tare_leave_(&s);
    }
    return ticks_end(t) - start;
}

/* Scopes, of which those with a bit are left out. */
static uint64_t time_left_out(struct thread *t, tare_site *site, uint64_t bits)
{
    uint64_t start = ticks_end(t);
    for (unsigned k = 0; k < SCOPES; k++) {
        bool out = bits >> k & 1;
        tare_scope s;
        t->hot.run = out ? 0 : t->runs;
        t->skipping = out;
        tare_record_(&s, site);
        tare_leave_(&s);
    }
    uint64_t took = ticks_end(t) - start;
    t->skipping = 0;
    t->hot.run = t->runs;
    return took;
}

/* What the scopes read in all. */
static uint64_t readings_of(const struct scratch *w, const struct node *n, uint64_t before)
{
    if (w->thread.mode & TARE_AGGREGATE) return n->total - before;
    uint64_t sum = 0;
    for (unsigned i = 0; i < SCOPES; i++) sum += w->events[2 * i + 1].ticks - w->events[2 * i].ticks;
    return sum;
}

static uint64_t per_scope(uint64_t with, uint64_t without)
{
    return with > without ? (with - without) * 256 / SCOPES : 0;
}

static void rewind_events(struct scratch *w)
{
    w->thread.hot.pos = (uint64_t)w->events;
    w->thread.hot.limit = (uint64_t)(w->events + 2 * SCOPES + 2);
}

/* What one costs that is left out by surprise, as it comes to a program: one in 64 calls is weighed, so the processor
 * guesses each of the scopes in it wrong, and begins anew. In a loop of nothing else it would guess right. */
static uint64_t cost_left_out(struct scratch *w, tare_site *site, uint64_t bits)
{
    uint64_t out = (uint64_t)__builtin_popcountll(bits);
    rewind_events(w);
    uint64_t none = time_left_out(&w->thread, site, 0);
    rewind_events(w);
    uint64_t some = time_left_out(&w->thread, site, bits), kept = none * (SCOPES - out) / SCOPES;
    return out && some > kept ? (some - kept) * 256 / out : 0;
}

static void one_round(struct scratch *w, tare_site *site, struct readings *r, unsigned i)
{
    struct thread *t = &w->thread;
    const struct node *n = w->site;
    uint64_t v = i + 1, before = n->total;
    rewind_events(w);
    uint64_t bare = time_work(t, &v), scoped = time_scoped_work(t, site, &v),
             read = readings_of(w, n, before);
    r->inside[i] = per_scope(read, bare);
    r->outside[i] = per_scope(scoped, read);
}

static struct weight_ticks summary(uint64_t *v)
{
    for (unsigned i = 1; i < ROUNDS; i++) /* insertion sort: qsort may allocate */
        for (unsigned k = i; k > 0 && v[k - 1] > v[k]; k--) {
            uint64_t swap = v[k];
            v[k] = v[k - 1];
            v[k - 1] = swap;
        }
    return (struct weight_ticks){clip(v[ROUNDS / 10]), clip(v[ROUNDS / 2]), clip(v[ROUNDS * 9 / 10]), 0};
}

void weigh_startup(struct process_info *out, tare_options *options)
{
    struct scratch *w = process_memory(sizeof *w);
    if (!w) return;
    tare_site site = {"", "", 0, TARE_SITE_SCOPE, (uint64_t)session.number << 32 | 1};
    scratch_open(w, &site, options);
    struct tare_thread_ *was = self_hot;
    struct readings r;
    self_hot = &w->thread.hot;
    for (unsigned i = 0; i < ROUNDS; i++) one_round(w, &site, &r, i);
    /* Last: it leaves the processor with wrong expectations. */
    for (unsigned i = 0; i < ROUNDS; i++) r.skipped[i] = cost_left_out(w, &site, rng_next(&w->thread.rng));
    self_hot = was;
    munmap(w, sizeof *w);
    out->inside = summary(r.inside);
    out->outside = summary(r.outside);
    out->skipped = summary(r.skipped);
}

/* SPDX-License-Identifier: MIT
 * thread.c - what one thread needs to record: its state in memory that a fork wipes, its event chunks and
 * its tree in the live mapping. A slot outlives its thread and is taken over by a later one, so memory is
 * bounded by the threads alive at one time, not by all that ever lived. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "trace/extent.h"
#include "trace/pages.h"
#include "trace/recorder.h"

enum { SLAB_THREADS = 16, FRESH_SLOTS = 256, FIRST_TREE_BYTES = 8 << 10, TREE_BYTES_MAX = 256 << 10 };

/* Stand-ins that self_hot points to; all zero, so that the hot path always turns off to thread_get(). */
static struct thread unregistered, registering, refused;
__thread struct tare_thread_ *tare_self_ __attribute__((tls_model("initial-exec"))) = &unregistered.hot;
extern __thread struct tare_thread_ *self_hot __attribute__((alias("tare_self_")));

static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;
static struct thread *slab;
static unsigned slab_left;

/* ---- loss ---- */

void thread_lost(struct thread *t, uint64_t n)
{
    if (t && t->head)
        t->head->lost += n;
    else if (session.live.base && __atomic_load_n(&fork_page->state, __ATOMIC_RELAXED) == FORK_READY)
        __atomic_fetch_add(&live_header(&session.live)->lost_scopes, n, __ATOMIC_RELAXED);
}

/* ---- memory ---- */

static struct thread *slab_take(void)
{
    if (!slab_left) {
        size_t bytes = SLAB_THREADS * sizeof(struct thread);
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) return NULL;
        if (madvise(p, bytes, MADV_WIPEONFORK) < 0) { /* Linux before 4.14: forks could not be told apart */
            munmap(p, bytes);
            return NULL;
        }
        slab = p;
        slab_left = SLAB_THREADS;
    }
    slab_left--;
    return slab++;
}

void *thread_arena(struct thread *t, size_t bytes)
{
    bytes = (bytes + LIVE_ALIGN - 1) / LIVE_ALIGN * LIVE_ALIGN;
    if ((size_t)(t->arena_end - t->arena) < bytes) {
        uint64_t want = t->arena_bytes < TREE_BYTES_MAX ? t->arena_bytes * 2 : TREE_BYTES_MAX;
        struct extent *x = live_alloc(&session.live, t->hot.base, EXTENT_TREE, want);
        if (!x) return NULL;
        x->thread = t->slot;
        t->arena_bytes = want;
        t->arena = (char *)(x + 1);
        t->arena_end = (char *)x + want;
    }
    void *p = t->arena;
    t->arena += bytes;
    return p;
}

/* ---- the tree ---- */

static struct node *node_new(struct thread *t, uint32_t parent, uint32_t site, uint32_t kind)
{
    struct node *n = thread_arena(t, sizeof *n);
    if (!n) return NULL;
    n->site = site;
    n->kind = kind;
    n->parent = parent;
    n->min = kind == TARE_SITE_COUNTER ? (uint64_t)INT64_MAX : UINT64_MAX;
    n->max = kind == TARE_SITE_COUNTER ? (uint64_t)INT64_MIN : 0;
    n->batch_next = n->batch_size = 1;
    return n;
}

struct node *thread_node(struct thread *t, struct node *parent, uint32_t site, uint32_t kind)
{
    for (uint32_t ref = parent->child; ref;) {
        struct node *n = node_at(t, ref);
        if (n->site == site) return n;
        ref = n->next;
    }
    struct node *n = node_new(t, ref_of(t, parent), site, kind);
    if (!n) return NULL;
    n->next = parent->child;
    __atomic_store_n(&parent->child, ref_of(t, n), __ATOMIC_RELEASE);
    return n;
}

/* The first extent of a slot: its header, then the root of its tree. */
static bool tree_open(struct thread *t)
{
    struct extent *x = live_alloc(&session.live, session.live.base, EXTENT_TREE, FIRST_TREE_BYTES);
    if (!x) return false;
    t->hot.base = session.live.base;
    x->thread = t->slot;
    x->spare[1] = 1; /* a slot header follows */
    t->head = (struct slot_header *)(x + 1);
    t->arena = (char *)(t->head + 1);
    t->arena_end = (char *)x + FIRST_TREE_BYTES;
    t->arena_bytes = FIRST_TREE_BYTES;
    struct node *root = node_new(t, 0, 0, TARE_SITE_SCOPE);
    if (!root) return false;
    t->root = root;
    __atomic_store_n(&t->head->root, ref_of(t, root), __ATOMIC_RELEASE);
    return true;
}

/* ---- event chunks ---- */

static struct extent *chunk_take(struct thread *t)
{
    uint64_t word;
    if (ring_pop(&t->free, &word)) return (struct extent *)word;
    if (t->n_chunks == RING_CHUNKS) return NULL;
    struct extent *x =
        live_alloc(&session.live, t->hot.base, EXTENT_EVENTS, t->n_chunks ? CHUNK_BYTES : FIRST_CHUNK_BYTES);
    if (x) t->n_chunks++;
    return x;
}

static void chunk_give(struct thread *t)
{
    if (!t->chunk) return;
    ring_push(&t->full, (uint64_t)t->chunk); /* there is a place for each of RING_CHUNKS */
    __atomic_store_n(&t->chunk, NULL, __ATOMIC_RELEASE);
    t->hot.limit = 0;
}

bool thread_next_chunk(struct thread *t)
{
    chunk_give(t);
    struct extent *x = chunk_take(t);
    if (!x) return false;
    if (__atomic_load_n(&tare_recording, __ATOMIC_RELAXED)) drain_start(); /* not after the session's end */
    x->thread = t->index;
    x->spare[0] = thread_depth(t); /* scopes open at its first event: lets a reader go on after a gap */
    __atomic_store_n(&x->seq, ++t->chunk_seq, __ATOMIC_RELEASE);
    __atomic_store_n(&t->chunk, x, __ATOMIC_RELEASE);
    /* Before the limit: a signal handler in between finds no room, never a wild place. */
    t->hot.pos = (uint64_t)(x + 1);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    t->hot.limit = (uint64_t)x + x->bytes;
    return true;
}

/* ---- start and end of a thread ---- */

/* By tare_thread_name(0, ..): holds in later sessions, too. */
static __thread char given_name[THREAD_NAME_MAX] __attribute__((tls_model("initial-exec")));

/* Never cut within a character. */
static void copy_name(char to[THREAD_NAME_MAX], const char *name)
{
    size_t n = strnlen(name, THREAD_NAME_MAX);
    if (n == THREAD_NAME_MAX)
        for (n--; n && (name[n] & 0xc0) == 0x80;) n--;
    memcpy(to, name, n);
    memset(to + n, 0, THREAD_NAME_MAX - n);
}

/* In the slot's own thread: the room for a name is there before another thread may want to give one. */
static void open_name(struct thread *t)
{
    uint32_t given = mapped_ref(&t->head->given);
    void *room = given ? (void *)node_at(t, given) : thread_arena(t, THREAD_NAME_MAX);
    if (!room) return;
    memcpy(room, given_name, THREAD_NAME_MAX);
    __atomic_store_n(&t->head->given, ref_of(t, room), __ATOMIC_RELEASE);
}

void tare_thread_name(uint32_t tid, const char *name)
{
    char kept[THREAD_NAME_MAX];
    copy_name(kept, name ? name : "");
    if (!tid) {
        memcpy(given_name, kept, sizeof kept);
        tid = process_tid();
    }
    if (!TARE_ON_ || __atomic_load_n(&fork_page->state, __ATOMIC_ACQUIRE) != FORK_READY) return;
    if (!lock_take(&session.lock)) return;
    for (struct thread *t = session.threads; t && TARE_ON_; t = t->next) {
        uint32_t given = t->tid == tid ? mapped_ref(&t->head->given) : 0;
        if (given && __atomic_load_n(&t->retired, __ATOMIC_ACQUIRE) == SLOT_LIVE)
            memcpy(node_at(t, given), kept, sizeof kept);
    }
    lock_give(&session.lock);
}

/* With the session's lock held, while it records: the name a thread has now, which it may have got after its first
 * scope. A thread that is gone keeps the one it had. */
static void refresh_name(const struct thread *t)
{
    char name[sizeof t->head->name];
    if (process_thread_name(t->tid, name)) memcpy(t->head->name, name, sizeof name);
}

void thread_names(void)
{
    for (struct thread *t = session.threads; t; t = t->next)
        if (__atomic_load_n(&t->retired, __ATOMIC_ACQUIRE) == SLOT_LIVE) refresh_name(t);
}

static void name_at_end(const struct thread *t)
{
    if (!lock_take(&session.lock)) return;
    if (__atomic_load_n(&tare_recording, __ATOMIC_RELAXED)) refresh_name(t);
    lock_give(&session.lock);
}

static void retire_thread(void *p)
{
    struct thread *t = p;
    if (self_thread() != t) return;
    self_hot = &unregistered.hot; /* scopes of later destructors register anew */
    if (__atomic_load_n(&fork_page->state, __ATOMIC_ACQUIRE) != FORK_READY || !thread_epoch(t)) return;
    __atomic_store_n(&t->hot.run, 0,
                     __ATOMIC_RELAXED); /* the session may end at this moment, and clear them too */
    __atomic_store_n(&t->epoch, 0, __ATOMIC_RELAXED);
    name_at_end(t);
    scope_flush(t);
    chunk_give(t);
    __atomic_store_n(&t->retired, t->mode & TARE_EVENTS ? SLOT_ENDED : SLOT_FREE, __ATOMIC_RELEASE);
}

static void make_exit_key(void)
{
    pthread_key_create(&exit_key, retire_thread);
}

static struct thread *slot_reuse(void)
{
    if (session.n_slots < FRESH_SLOTS) return NULL; /* keep threads apart while it is cheap */
    for (struct thread *t = session.threads; t; t = t->next)
        if (__atomic_load_n(&t->retired, __ATOMIC_ACQUIRE) == SLOT_FREE) return t;
    return NULL;
}

static struct thread *slot_new(void)
{
    struct thread *t = slab_take(); /* zeros as mapped: most of it need never be in memory */
    if (!t) return NULL;
    t->slot = session.n_slots;
    if (!tree_open(t)) { /* the struct is spent with the session's memory: nothing more will come */
        slab_left++;
        slab--;
        return NULL;
    }
    session.n_slots++;
    ring_init(&t->full, t->full_mem, RING_CHUNKS);
    ring_init(&t->free, t->free_mem, RING_CHUNKS);
    t->next = session.threads;
    __atomic_store_n(&session.threads, t, __ATOMIC_RELEASE);
    return t;
}

/* A slot for the calling thread, new or taken over: all that must be right before `run` says that it records. */
static void slot_ready(struct thread *t)
{
    t->index = live_header(&session.live)->threads++;
    t->tid = process_tid();
    t->head->tid = t->tid;
    t->head->thread = t->index;
    process_thread_name(t->tid, t->head->name);
    open_name(t);
    __atomic_store_n(&t->head->threads, t->head->threads + 1,
                     __ATOMIC_RELEASE); /* last: now it means something */
    t->mode = session.options.mode;
    t->clock = session_clock();
    t->hot.session = session.number;
    t->skipping = t->busy = 0; /* the slot's last thread may have ended in the middle of something */
    t->pair_node = NULL;
    t->chunk_seq = 0;
    void *root = t->mode & TARE_AGGREGATE ? t->root : NULL;
    t->hot.stack[0] = (struct tare_frame_){STACK_TOP, root};
    rng_seed(&t->rng, process_random() ^ t->index);
    weigh_coin(t);
    if (++session.epoch == 0) session.epoch = 1;
    for (uint32_t d = thread_depth(t); d; d--) t->hot.stack[d].sp = NULL; /* what its last thread left open */
    t->hot.tag = (uint64_t)session.epoch << 32;
    t->hot.how = how_word(t->mode, t->clock);
    t->runs = run_word(t->clock);
    __atomic_store_n(&t->epoch, session.epoch, __ATOMIC_RELAXED);
    __atomic_store_n(&t->retired, SLOT_LIVE, __ATOMIC_RELAXED); /* the helper looks at it at any time */
    __atomic_store_n(&t->hot.run, t->runs,
                     __ATOMIC_RELAXED); /* with the lock held: the end of the session clears it */
}

static struct thread *thread_register(void)
{
    if (!lock_take(&session.lock)) return NULL;
    bool late = !__atomic_load_n(&tare_recording, __ATOMIC_RELAXED); /* stopped since thread_get() looked */
    struct thread *t = late ? NULL : slot_reuse();
    if (!t && !late) t = slot_new();
    if (t) slot_ready(t);
    lock_give(&session.lock);
    if (!t) return NULL;
    if (t->mode & TARE_EVENTS) thread_next_chunk(t); /* without one, events are counted as lost */
    pthread_once(&exit_key_once, make_exit_key);
    pthread_setspecific(exit_key, t);
    session_pair();
    return t;
}

static bool process_ready(void)
{
    uint32_t was = FORK_UNKNOWN;
    if (__atomic_load_n(&fork_page->state, __ATOMIC_ACQUIRE) == FORK_READY) return true;
    if (!__atomic_compare_exchange_n(&fork_page->state, &was, FORK_JOINING, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return false;
    if (session_child() != TARE_OK) { /* cannot record here: the child runs on, unrecorded */
        __atomic_store_n(&tare_recording, 0, __ATOMIC_RELAXED);
        return false;
    }
    __atomic_store_n(&fork_page->state, FORK_READY, __ATOMIC_RELEASE);
    if (session.live.waits) drain_start();
    return true;
}

static struct thread *thread_enter(struct thread *was)
{
    self_hot = &registering.hot;
    if (!process_ready()) {
        self_hot = &unregistered.hot;
        return NULL;
    }
    pages_guard_thread();
    bool spent = was == &refused && session.live.room - live_header(&session.live)->used < FIRST_TREE_BYTES;
    struct thread *t = spent ? NULL : thread_register();
    self_hot = t ? &t->hot : &refused.hot;
    if (!t) thread_lost(NULL, 1);
    return t;
}

struct thread *thread_get(void)
{
    if (!__atomic_load_n(&tare_recording, __ATOMIC_RELAXED)) return NULL;
    /* Not in the middle of it (a signal handler), and not again so soon: a refused thread asks at every scope. */
    if (self_thread() == &registering || (self_thread() == &refused && live_refuses(&session.live))) {
        thread_lost(NULL, 1);
        return NULL;
    }
    int saved = errno;
    int cancel; /* a cancelled thread must not end in there: it would leave locks behind */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    struct thread *t = thread_enter(self_thread());
    pthread_setcancelstate(cancel, NULL);
    errno = saved;
    return t;
}

/* A thread that is inside a scope meanwhile goes on writing to memory that stays valid; its next begin
 * registers anew. */
void thread_forget_all(void)
{
    bool ours = fork_page && __atomic_load_n(&fork_page->state, __ATOMIC_RELAXED) == FORK_READY;
    for (struct thread *t = ours ? session.threads : NULL; t; t = t->next) {
        __atomic_store_n(&t->epoch, 0, __ATOMIC_SEQ_CST); /* in this order: see weigh_cancel() */
        __atomic_store_n(&t->hot.run, 0, __ATOMIC_SEQ_CST);
    }
    session.threads = NULL;
    session.n_slots = 0;
    slab_left = 0;
}

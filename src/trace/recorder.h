/* SPDX-License-Identifier: MIT
 * recorder.h - the recording half of trace, as seen by its own files: the session, the thread state and the
 * few calls between them. It runs inside other people's programs: no exit, no print, no allocation and no
 * lock on the event path; what cannot be done becomes a counter.
 *
 *   scope.c    the hot path: begin, end, count, mark     weigh.c    start-up and in-situ weighing
 *   thread.c   a thread's state, chunks and tree         drain.c    helper thread: full chunks -> archive
 *   site.c     names                                     session.c  start, stop, forked children
 *   live.c     the shared mapping                        archive.c  the file chunks are appended to
 *   process.c  who we are and who is alive               pack.c     raw events -> bytes
 *   env.c      TARE_* variables                          fold.c     a live file -> chunks
 *
 * Every field of `struct thread` reads 0 in a forked child (its memory is wiped on fork), and 0 in `run`
 * always means "take the slow path": no further test for fork, thread start, or a weighed call. */
#ifndef TRACE_RECORDER_H
#define TRACE_RECORDER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/ring.h"
#include "core/rng.h"
#include "trace/format.h"
#include "trace/live.h"

enum { RING_CHUNKS = 64, FIRST_CHUNK_BYTES = 8 << 10, CHUNK_BYTES = 64 << 10 };
enum { DEPTH_MAX = TARE_DEPTH_ }; /* deeper scopes are counted as lost */

/* What tare_scope holds. One begun by tare_begin_fast_ has its thread in place of `site`. */
struct scope {
    uint64_t tag; /* struct tare_thread_'s when it was innermost; 0: not recorded */
    uint64_t start;
    tare_site *site; /* of a free scope: to go on with after a pause */
    uint64_t held;   /* its ticks before the pause */
    uint64_t how;    /* 0: not one for tare_end_fast_. While it waits: epoch << 32 | number of the pause */
};
static_assert(sizeof(struct scope) == sizeof(tare_scope), "tare_scope holds a scope");

/* What code inlined in other programs counts on: see TARE_LAYOUT_. */
static_assert(offsetof(struct tare_node_, octave) == offsetof(struct node, octave), "layout 1: node");
static_assert(offsetof(struct tare_thread_, path) == 64 && sizeof(struct tare_path_) == 32,
              "layout 1: thread");
static_assert(offsetof(struct tare_thread_, stack) == 64 + 128 * 32, "layout 1: thread");
static_assert((int)TARE_OCTAVES_ == (int)OCTAVES && SUBS == 16, "layout 1: histograms");
static_assert((int)RAW_BEGIN == 1 && (int)RAW_END == 2 && sizeof(struct raw_event) == 16, "layout 1: events");

#define STACK_TOP ((const char *)UINTPTR_MAX) /* sp of a scope that lies on no stack */

enum tick_clock { TICK_RAW = 0, TICK_FAST = 1, TICK_ORDERED = 2 };

struct thread {
    struct tare_thread_ hot;
    uint32_t runs;     /* hot.run while scopes are recorded the plain way; it is 0 in a weighed call */
    uint32_t epoch;    /* of this registration; unique in the process, 0: none. In hot.tag, too */
    uint32_t mode;     /* enum tare_mode bits */
    uint32_t clock;    /* enum tick_clock */
    uint32_t skipping; /* 1: inside a weighed call */
    uint64_t thrown;   /* sum of all coins: less hot.coin, the scopes begun and recorded */
    uint64_t skipped;  /* begun inside the weighed call */
    uint32_t busy;     /* 1: in a slow path; a signal handler's scopes are dropped */
    uint32_t slot, index, tid;
    uint32_t weighed, pauses;      /* depth of the weighed call; number of the latest pause */
    struct node *root, *pair_node; /* root: of its tree, not to be read back from pages that may go */
    uint64_t pair_off, pair_scopes;
    struct rng rng;
    struct slot_header *head;
    char *arena, *arena_end;
    uint64_t arena_bytes;
    struct extent *chunk, *kept; /* kept: by the helper, see is_under_way() */
    uint64_t chunk_seq;
    uint32_t n_chunks;
    uint32_t retired; /* 1: the thread ended, the helper may archive and free the slot */
    struct ring full, free;
    uint64_t full_mem[RING_CHUNKS], free_mem[RING_CHUNKS];
    struct thread *next; /* all slots of the process, newest first */
};

struct session {
    uint32_t number;      /* counts sessions of this process, for site ids */
    tare_options options; /* path points to `path` */
    char path[3800];
    char run_id[32];
    struct clock_source source;
    struct clock_pair first_pair;
    uint64_t last_pair_ns;
    struct process_info calibrated; /* as in the live header, but still there after a fork */
    struct live live;
    struct own_file archive;
    uint64_t archived_bytes; /* of events, against options.disk_bytes */
    struct thread *threads;  /* atomic list head */
    uint32_t n_slots;
    uint32_t epoch;       /* last registration epoch */
    uint32_t lock;        /* slow paths: sites, slots */
    uint32_t next_site;   /* sites are numbered from 1; a forked child goes on from its parent's */
    unsigned shift;       /* packed times are in units of 2^shift ticks */
    uint64_t retry_ticks; /* after a refused extent nobody asks again for so long */
    struct extent *sites; /* where the next site goes */
    uint64_t sites_used;
};

extern struct session session;
/* hot.run of a thread that records; inlined code knows the time-stamp counter alone. */
static inline uint32_t run_word(uint32_t clock)
{
    return clock == TICK_RAW ? UINT32_MAX : TARE_LAYOUT_;
}
static inline uint32_t how_word(uint32_t mode, uint32_t clock)
{
    return mode | (clock == TICK_ORDERED ? TARE_RUN_ORDERED_ : 0u);
}

/* tare_self_, but always this library's own. */
extern __thread struct tare_thread_ *self_hot
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
static inline struct thread *self_thread(void)
{
    return (struct thread *)(void *)self_hot;
}

enum slot_state { SLOT_LIVE = 0, SLOT_ENDED = 1, SLOT_FREE = 2 }; /* thread.retired */

/* One page that a fork wipes: 0 in a process that has not (yet) set itself up. */
enum { FORK_UNKNOWN = 0, FORK_JOINING = 1, FORK_READY = 2, FORK_ENDED = 3 };
struct fork_page {
    uint32_t state, stopping; /* stopping: a thread of this process is in tare_stop() */
};
extern struct fork_page *fork_page;

/* session.c */
/* tare_start(); force_fallback, for tests: pretend that the time-stamp counter cannot be trusted. */
tare_status start_session(const tare_options *opts, bool force_fallback, tare_error *err);
uint32_t session_clock(void);
/* The lock of the slow paths. An ordinary thread waits for it; a real-time thread, which could starve the one that
 * holds it, gives up: false, and what it wanted to record is counted as lost. */
bool lock_take(uint32_t *lock);
void lock_wait(uint32_t *lock); /* for start and stop */
void lock_give(uint32_t *lock);
void session_pair(void);         /* note (ticks, wall) if the last one is old */
tare_status session_child(void); /* in a forked child: own live file in the same trace */

/* thread.c: the state of this thread, ready to record, or NULL (busy, or nothing left: counted as lost) */
struct thread *thread_get(void);
void thread_lost(struct thread *t, uint64_t n);
bool thread_next_chunk(struct thread *t);
void *thread_arena(struct thread *t,
                   size_t bytes); /* zeroed, LIVE_ALIGN-aligned, in the mapping; NULL when spent */
struct node *thread_node(struct thread *t, struct node *parent, uint32_t site, uint32_t kind);
void thread_names(void);      /* of all that live, as they are now */
void thread_forget_all(void); /* the next session, or a forked child, starts with fresh slots */

/* Cleared by another thread when the session ends; all others only read and write them in their own. */
static inline uint32_t thread_runs(const struct thread *t)
{
    return __atomic_load_n(&t->hot.run, __ATOMIC_RELAXED);
}
static inline uint32_t thread_epoch(const struct thread *t)
{
    return __atomic_load_n(&t->epoch, __ATOMIC_RELAXED);
}

static inline struct node *node_at(const struct thread *t, uint32_t ref)
{
    return (struct node *)(void *)(t->hot.base + (uint64_t)ref * LIVE_ALIGN);
}
static inline uint32_t ref_of(const struct thread *t, const void *p)
{
    return (uint32_t)((uint64_t)((const char *)p - t->hot.base) / LIVE_ALIGN);
}

/* site.c: a valid id for this session (session number << 32 | index), 0 when the table is full */
uint64_t site_id(tare_site *site);

/* scope.c */
void scope_flush(struct thread *t);
#define thread_depth(t) ((uint32_t)((uint32_t)(t)->hot.tag / sizeof(struct tare_frame_)))
/* The running scope's node or the root; NULL without aggregation. */
static inline struct node *thread_at(const struct thread *t)
{
    return (struct node *)(void *)t->hot.stack[thread_depth(t)].node;
}
static inline uint64_t ticks_begin(const struct thread *t)
{
    return __builtin_expect(t->clock != TICK_RAW, 1) ? clock_tsc() : clock_raw_ns();
}
static inline uint64_t ticks_end(const struct thread *t)
{
    if (__builtin_expect(t->clock == TICK_ORDERED, 1)) return clock_tsc_ordered();
    return t->clock == TICK_FAST ? clock_tsc() : clock_raw_ns();
}

/* weigh.c */
void weigh_startup(struct process_info *out, tare_options *options);
void weigh_coin(struct thread *t);                         /* throw the next coin */
bool weigh_wanted(struct thread *t, const struct node *n); /* is this path worth weighing? */
void weigh_begin(struct thread *t); /* the scope that begins: leave out what it calls */
void weigh_end(struct thread *t, struct node *n, uint64_t ticks);
void weigh_cancel(struct thread *t); /* the weighed call was abandoned */
void weigh_pair_begin(struct thread *t, struct node *n);
void weigh_pair_end(struct thread *t, struct node *n, uint64_t ticks);
enum node_flags { NODE_AWAITS_PAIR = 1, NODE_IN_PAIR = 2, NODE_NOT_WORTH = 4 };

/* drain.c */
void drain_start(void);   /* the helper thread; does nothing if it runs */
void drain_stop(void);    /* join it; all full chunks are archived */
void drain_abandon(void); /* from a signal handler: let it end by itself */
void drain_forget(void);  /* in a forked child, and before the next session */

/* archive.c: create, or join a trace that is being recorded; an earlier one is put aside. `run_id`: of a new one ("":
 * one is made), then that of the trace. The descriptor, locked until the caller's PROCESS chunk is in, or a status. */
int archive_open(const char *path, char run_id[32], tare_error *err);
uint32_t archive_sampler(int fd); /* the process that samples into it now; 0: none */
bool archive_lock(int fd, int tries_ms);
/* Whole chunks at the end; gives the lock back. False with errno: what came in part was taken back, if locked. */
bool archive_write(int fd, bool locked, struct iovec v[2]);
/* What goes before `payload` in the file. */
struct chunk_header archive_chunk_header(enum chunk_type type, uint64_t process, const void *payload,
                                         size_t bytes);
tare_status archive_join(const char *path, tare_error *err); /* archive_open() for the session */
tare_status archive_reopen(void);                            /* in a forked child: a description of our own */
bool archive_append(enum chunk_type type, uint64_t process, const void *payload, size_t bytes);
bool archive_process(void);
bool archive_close(void);     /* everything still in the live file; true: it is not needed any more */
void archive_fold_dead(void); /* live files that dead processes of this trace left behind */
void archive_leave(void);

/* process.c */
uint32_t process_tid(void);
uint64_t process_start_time(uint32_t pid);                  /* 0: not alive (or a zombie) */
void process_command(char *out, size_t size, uint32_t pid); /* 0: its own */
bool process_thread_name(uint32_t tid, char out[16]);       /* false: no such thread */
uint64_t process_random(void);
bool process_last_thread(void);     /* main() left by pthread_exit, and nobody but the caller is left */
void *process_memory(size_t bytes); /* zeros, not of the program's malloc; NULL: none left */
/* Keep a descriptor out of the program's way: `fd` is closed and given back under a high number; -1: none left. */
int process_fd(int fd);

/* Around what may exceed RLIMIT_FSIZE: its SIGXFSZ would end a program that wrote nothing itself. */
struct quiet {
    sigset_t before;
    bool was_pending;
};
void process_quiet(struct quiet *q);
void process_unquiet(const struct quiet *q);

#endif

/* SPDX-License-Identifier: MIT
 * reader.h - data model 2, read side: one opened trace, whatever it is made of (the archive FILE.tare and
 * the live files that a killed or running program left beside it). Everything handed out was validated:
 * indices are in range, strings are NUL-terminated UTF-8, events of a thread nest properly. What was
 * damaged or lost is in `loss`, never an error, unless nothing could be read at all. */
#ifndef TRACE_READER_H
#define TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/interval.h"

struct trace;

struct trace_site {
    const char *name, *file; /* file may be "" */
    uint32_t line;
    uint32_t kind; /* enum tare_site_kind */
};

struct trace_process {
    uint32_t pid, parent_pid;
    const char *command;             /* argv joined by blanks */
    uint64_t start_unix_ns;          /* wall clock when recording began */
    uint64_t start_raw_ns;           /* its machine's CLOCK_MONOTONIC_RAW then */
    uint64_t start_ns, end_ns;       /* on the trace's time axis */
    uint32_t mode;                   /* enum tare_mode bits */
    uint32_t clock;                  /* enum tare_clock */
    bool tsc;                        /* false: CLOCK_MONOTONIC_RAW was used */
    bool closed;                     /* false: it was killed, is still running, or ended as `end` says */
    uint32_t end;                    /* enum record_end */
    double tick_ns;                  /* length of one clock tick */
    struct interval inside, outside; /* cost of one empty scope: within its own reading, and beyond */
    struct interval skipped;         /* cost of one scope that is left out while weighing */
};

struct trace_thread {
    uint32_t process; /* index */
    uint32_t tid;
    const char *name;
    uint64_t events;  /* begin, end, count and mark events that trace_events() will deliver */
    uint64_t dropped; /* not recorded: ring full, disk full, limit reached */
    bool waits;       /* some of its scopes may be paused */
};

struct trace_loss {
    uint64_t dropped;        /* events and scopes counted as dropped by the recorder */
    uint64_t damaged_chunks; /* failed their checksum or made no sense */
    uint64_t damaged_bytes;
    uint64_t unclosed_scopes;  /* still open when their thread's record ends */
    uint64_t abandoned_scopes; /* left by longjmp, or never ended */
    uint64_t unknown_chunks;   /* of a newer minor version: skipped */
    uint64_t foreign_scopes;   /* ended in another thread or process than they began in */
    uint64_t missing_live;     /* processes that did not close and whose live file is gone */
    uint64_t ended_early;      /* processes that ran on when recording had ended */
    char first[200];           /* where and what the first damage is; "" if none */
};

enum trace_event_kind { TRACE_BEGIN, TRACE_END, TRACE_COUNT, TRACE_MARK };

enum trace_event_flags {
    TRACE_WEIGHED = 1,   /* BEGIN: its descendants were left out on purpose, to weigh the instrument */
    TRACE_SYNTHETIC = 2, /* END: made up by the reader; the program never ended this scope */
    TRACE_PAUSED = 4,    /* END: the call goes on later, as a BEGIN with the same `pause` says */
    TRACE_RESUMED = 8,   /* BEGIN: no new call */
    TRACE_WAITED =
        16, /* with TRACE_RESUMED: the time since then is part of the call (a task, not a generator) */
    TRACE_LATE = 32, /* PAUSED, RESUMED: noticed only when the thread's next scope began or ended (asyncio) */
};

struct trace_event {
    uint64_t time_ns; /* since the start of the trace */
    uint32_t thread;  /* index */
    uint32_t site;    /* index */
    uint8_t kind, flags;
    uint32_t pause;    /* PAUSED, RESUMED: its number in the thread; else 0 */
    uint64_t began_ns; /* END, BEGIN: when the call began; later by what is not part of it */
    int64_t value;     /* COUNT */
    const char *text;  /* MARK: valid during the call only */
};

tare_status trace_open(struct trace **out, const char *path, tare_error *err);
void trace_close(struct trace *t); /* NULL is fine */

const char *trace_path(const struct trace *t);
const char *trace_id(const struct trace *t);        /* ULID of the recording */
uint64_t trace_begun_raw_ns(const struct trace *t); /* CLOCK_MONOTONIC_RAW at time 0, as samples have it */
uint32_t trace_n_sites(const struct trace *t);
uint32_t trace_n_processes(const struct trace *t);
uint32_t trace_n_threads(const struct trace *t);
const struct trace_site *trace_site(const struct trace *t, uint32_t i);
const struct trace_process *trace_process(const struct trace *t, uint32_t i);
const struct trace_thread *trace_thread(const struct trace *t, uint32_t i);
const struct trace_loss *trace_loss(const struct trace *t);
bool trace_has_events(const struct trace *t);
bool trace_has_tree(const struct trace *t);
uint64_t trace_raw_time(const struct trace *t,
                        uint64_t raw_ns); /* of CLOCK_MONOTONIC_RAW on the trace's axis */

/* Deliver the events of thread `thread` in time order, properly nested: every BEGIN gets its END.
 * Streams: memory use does not grow with the trace. Stops when `fn` returns non-zero and returns that. */
typedef int trace_event_fn(void *ctx, const struct trace_event *e);
tare_status trace_events(struct trace *t, uint32_t thread, trace_event_fn *fn, void *ctx, tare_error *err);

/* ---- the trees, as recorded: one per thread slot, in ticks ---- */

struct trace_bucket {
    uint64_t low, high; /* ticks: low <= reading < high */
    uint64_t count;
};

struct trace_pair {
    uint32_t off, on, scopes; /* ticks without and with the scopes inside, and how many those were */
};

struct trace_node {
    uint32_t process, slot;  /* whose tree */
    uint32_t threads;        /* that used this slot */
    int64_t thread;          /* index of the latest, -1 if unknown */
    uint32_t number, parent; /* preorder; the root is 0 */
    uint32_t site;           /* index; not for the root */
    uint32_t kind;
    uint64_t count;
    int64_t total, min, max;                   /* ticks, or a counter's values */
    uint64_t off_count, off_total, off_scopes; /* weighed calls */
    uint64_t abandoned;
    uint64_t batch_size;
    uint32_t n_batches, n_buckets, n_pairs;
    uint64_t batch[32];              /* ticks of consecutive batches of batch_size calls */
    struct trace_bucket bucket[768]; /* ascending */
    struct trace_pair pair[512];
};

/* Deliver every node, parents before children, slot by slot. `n` is reused between calls. */
typedef int trace_node_fn(void *ctx, const struct trace_node *n);
tare_status trace_nodes(struct trace *t, trace_node_fn *fn, void *ctx, tare_error *err);

/* One closed, compressed file out of whatever a trace is made of: an archive, the live files of killed programs, chunks
 * written twice. What the reader understood is what the copy holds. */
typedef tare_status repack_write(void *ctx, const void *bytes, size_t n, tare_error *err);
tare_status trace_repack(struct trace *t, repack_write *write, void *ctx, tare_error *err);

#endif

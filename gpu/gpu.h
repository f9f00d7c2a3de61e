/* SPDX-License-Identifier: MIT
 * gpu.h - libtare-gpu.so, injected by CUDA_INJECTION64_PATH and NVTX_INJECTION64_PATH into programs that use CUDA:
 *
 *   inject.c      the driver calls in; what to record; exit and fork      cupti_load.c  which libcupti
 *   collect.c     CUPTI's buffers, and the thread that empties them       decode.c      a buffer -> records
 *   nvtx.c        ranges of the program, queued for the same thread       book.c        records -> chunks of the trace
 *   host.c        what the launching threads do meanwhile                 block.c       a block of a running program
 *   guard.c       whether the record is still whole                       rank.c        who this process is in a job
 *   graphs.c      whether kernels of CUDA graphs would cost too much
 *
 * It lives in other people's programs: it prints nothing, ends nothing and waits for nothing on their threads. What
 * cannot be done is a NOTE in the trace. Only the collecting thread touches the book; CUPTI's threads and the program's
 * leave it full buffers and queued ranges. */
#ifndef GPU_GPU_H
#define GPU_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "core/map.h"
#include "core/vec.h"
#include "gpu/cupti.h"
#include "trace/appender.h"
#include "trace/gpu.h"

enum { CALL_IDS = 2048 /* CUDA 13 has 900 */, BOOK_ROOM = 256 << 10 /* bytes of a chunk */ };
enum { BOOK_LANES = 64 };      /* whose latest end is kept, by number */
enum { BOOK_NAMES = 1 << 16 }; /* names, lanes and shapes that are kept */

struct gpu_options {
    const char *trace, *cupti;
    bool calls;        /* launches, copies and synchronisation as the host sees them */
    bool whole_graphs; /* one record a launch of a graph */
    bool auto_graphs;  /* .. where records of its kernels would cost too much */
    bool late;         /* the program has used the GPU already */
    bool shared;       /* without a subscription: another has one and does not use it */
};

/* ---- inject.c ---- */
bool recording_begin(const struct gpu_options *o, char *why, size_t why_bytes);
bool recording_end(const struct gpu_options *o); /* false: CUPTI does not give back what it has */
void inject_again(void); /* our buffers and kinds, whoever changed them; on the collecting thread */

/* CUPTI's clock is the wall clock, which can be set while we record. Stamps are told as if it had not been: those from
 * before, as far as they still come, and those from now on have each what is added to them. */
struct book_clock {
    int64_t ahead_ns, slack_ns;   /* of CLOCK_MONOTONIC_RAW, when last looked at, and how sure that is */
    uint64_t shift, shift_before; /* added to stamps: now, and before the latest step */
    uint64_t step_from, step_to;  /* around it, as CUPTI's clock had it; 0: no step, or long ago */
    uint64_t steps;
};

/* ---- book.c: what was recorded, put into words and chunks ---- */
struct book {
    struct appender to;
    struct gpu_state state;
    struct enc enc;
    uint8_t *room;
    uint64_t in_chunk;                   /* records */
    struct gpu_record pair;              /* the latest CLOCK */
    struct map_str names, lanes, shapes; /* -> number */
    VEC(const char *) texts;             /* by number - 1: the names */
    struct map_u64 pointers; /* where a name was met -> its number, as long as it still reads the same */
    struct map_u64 devices;  /* told already: number + 1 -> 1 */
    struct map_u64 pools;    /* address + 1 -> bytes + 1, as last told */
    struct book_clock clock;
    uint64_t call_names[3][CALL_IDS]; /* by domain and id; 0: not asked yet */
    uint64_t dropped, untimed, unread, unwritten, ranges_lost, told_losses;
    uint64_t operations, last_end;         /* for the guard: operations decoded; the latest end */
    uint64_t begun, lane_ends[BOOK_LANES]; /* stamps: where the record begins; the latest end by lane */
};
tare_status book_open(struct book *b, const char *path, tare_error *err);
bool book_put(struct book *b, const struct gpu_record *r); /* false: lost, and counted */
void book_make_room(struct book *b); /* between records: what was told may be forgotten, and is told again */
uint64_t book_name(struct book *b,
                   const char *text); /* found by its place first: for texts that stay where they are */
uint64_t book_text(struct book *b, const char *text);
uint64_t book_number(struct book *b, struct map_str *m, struct gpu_record *r); /* of a LANE or SHAPE */
void book_clock(struct book *b, const struct cupti *c);
void book_watch_clock(struct book *b, const struct cupti *c); /* cheap: has the clock been set? */
uint64_t book_stamp(const struct book *b, uint64_t stamp);    /* of CUPTI, as the trace has it */
void book_note(struct book *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void book_note_late(struct book *b); /* that recording began in a running program */
void book_flush(struct book *b);     /* what there is goes to the file */
void book_close(struct book *b);

/* ---- decode.c ---- */
void decode_buffer(struct book *b, const struct cupti *c, uint8_t *buffer, size_t valid);

/* ---- collect.c ---- */
cupti_request_fn collect_request;
cupti_complete_fn collect_complete;
bool collect_start(const struct cupti *c, struct book *b);
bool collect_stop(uint32_t most_ms); /* everything is fetched and written; false: not within that time */
void collect_stop_at_exit(void);
void collect_abandon(void); /* in a forked child */

/* ---- host.c ---- */
void host_watch(struct book *b, uint32_t thread); /* one that launches: its name is booked */
void host_look(struct book *b);
void host_forget(void); /* all of them */

/* ---- rank.c ---- */
void rank_tell(struct book *b);

/* ---- guard.c: called after each flush, on the collecting thread ---- */
cupti_callback_fn guard_callback;
/* Without a subscriber nobody tells of launches: then no hole is looked for. */
void guard_start(const struct cupti *c, void *subscriber, const struct book *b);
void guard_look(struct book *b);
void guard_end(struct book *b); /* at the program's end, after the last flush */

/* ---- graphs.c: likewise, and told of kernels as they are decoded ---- */
void graphs_start(const struct cupti *c, void *subscriber, bool automatic);
bool graphs_callback(int domain, uint32_t id); /* whether it was about graphs */
void graphs_saw(const struct gpu_record *kernel);
void graphs_look(struct book *b);
void graphs_end(struct book *b);

/* ---- nvtx.c: ranges on the program's threads ---- */
void nvtx_forget(void);               /* what is left of the last block */
void nvtx_use(const struct cupti *c); /* kernels can be joined to ranges from now on */
void nvtx_collect(struct book *b);
void nvtx_rest(void); /* between blocks: ranges are let pass */
void nvtx_abandon(void);
void nvtx_allow(void);      /* NVTX may call in though no variable names a trace; ranges are let pass */
uint64_t nvtx_pushes(void); /* so far, recorded or not */
void nvtx_push(const char *name, bool module); /* as if told by NVTX, in the domain of modules or in none */
void nvtx_pop(bool module);

#endif

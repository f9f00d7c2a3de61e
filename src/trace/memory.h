/* SPDX-License-Identifier: MIT
 * memory.h - who allocated memory and who freed it, in the trace: records packed into MEMORY chunks by the injected
 * agent and read back in the order of time. memory_records.def lists them, docs/memory.md says how they come about. */
#ifndef TRACE_MEMORY_H
#define TRACE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "trace/wire.h"

#define F(field, coding)
#define RECORD(number, name, fields) MEMORY_##name = number,
enum memory_kind {
#include "trace/memory_records.def"
    MEMORY_KINDS
};
#undef RECORD
#undef F

struct memory_record {
    enum memory_kind kind;
    const char *text; /* START, NAME, THREAD, MODULE, CODE, NOTE; not NUL-terminated */
    size_t text_bytes;
    union {
        uint64_t v[12];
#define F(field, coding) uint64_t field;
#define RECORD(number, name, fields) \
    struct {                         \
        fields                       \
    } name;
#include "trace/memory_records.def"
#undef RECORD
#undef F
    };
};

enum { MEMORY_TEXT_MOST = 4000 }; /* of a name, a path; the line table of a function may be longer */
enum { MEMORY_TABLE_MOST = 32 << 10 };

/* What differences are taken to; zeroed at the start of a chunk. */
struct memory_state {
    uint64_t last[4];
};

/* False, and nothing is written, when there is no room. */
bool memory_pack(struct memory_state *s, struct enc *to, const struct memory_record *r);
/* False at the end, and at bytes that are no record (then d->failed). */
bool memory_unpack(struct memory_state *s, struct dec *d, struct memory_record *r);
static inline bool memory_has_time(enum memory_kind kind) /* its first field is a time */
{
    return kind >= MEMORY_ALLOC;
}

/* A chunk's payload begins with these, as varints: which stream of records, and its place in it, from 1. */
struct memory_head {
    uint64_t slot, seq;
};
enum { MEMORY_SLOTS_MOST = 1 << 16 };
bool memory_head(struct dec *d, struct memory_head *out);

/* STACK.kind: what `where` and `at` say of a frame. The parent is the caller; 0 is the root, which is told nowhere. */
enum memory_frame {
    MEMORY_NATIVE = 1, /* where: the address in the program; at: number of its MODULE, 0 unknown */
    MEMORY_PYTHON = 2, /* where: number of its CODE; at: byte offset of the instruction */
    MEMORY_SCOPE = 3,  /* where: number of a NAME: a scope of tare around all that is below */
    MEMORY_CUT = 4,    /* frames further out are missing; where: enum memory_cut */
    MEMORY_NAMED = 5   /* native code that is made at run time; where: number of a NAME */
};
enum memory_cut {
    MEMORY_CUT_DEPTH = 1 /* more than are recorded */,
    MEMORY_CUT_UNKNOWN /* code without unwind tables */,
    MEMORY_CUT_REGISTER /* a register that is not known of a thread that waits */,
    MEMORY_CUT_STACK /* the stack could not be read */,
    MEMORY_CUT_NONSENSE /* tables that make no sense */
};

enum memory_map {
    MEMORY_MAP_ANONYMOUS = 1,
    MEMORY_MAP_FILE = 2,
    MEMORY_MAP_ARENA = 4, /* of Python's allocator */
    MEMORY_MAP_MALLOC = 8 /* by a malloc that is not libc's, for what it hands out */
};

/* NOTE.what */
enum memory_note { MEMORY_NOTE_PLAIN, MEMORY_NOTE_OWN_MALLOC, MEMORY_NOTE_NO_PYTHON, MEMORY_NOTE_NO_NATIVE };

/* SAMPLE.state: what the thread did (the lowest bits), and what else was known of it. */
#define STACK_DOING_MAP(X)                                                              \
    X(UNKNOWN, "unknown") X(RUNS, "runs") X(WAITS, "waits") X(WAITS_LOCK, "lock")       \
    X(WAITS_GIL, "GIL") X(SLEEPS, "sleep") X(WAITS_IO, "I/O") X(WAITS_NETWORK, "network") \
    X(WAITS_EVENTS, "events") X(WAITS_CHILD, "child") X(WAITS_SIGNAL, "signal")         \
    X(WAITS_DISK, "disk") X(STOPPED, "stopped") X(ENDED, "ended")
enum stack_doing {
#define X(name, text) STACK_##name,
    STACK_DOING_MAP(X)
#undef X
        STACK_DOINGS
};
enum {
    STACK_DOING_BITS = 15,
    STACK_HOLDS_GIL = 16,
    STACK_COLLECTS = 32,
    STACK_MOVED = 64,
    STACK_BROKEN = 128,
    STACK_OFF_CPU = 256 /* had no processor at the look: ready, or waiting */
};

/* Of a PROCESS, beside enum tare_mode: it writes MEMORY chunks; it is looked at from outside, and MEMORY
 * chunks tell of its stacks. */
enum { MODE_MEMORY = 16, MODE_STACKS = 32 };

/* The line of a frame: `table` is the text of its CODE, made by CPython `version` (0x030b for 3.11). 0: unknown. */
uint32_t memory_line(const struct memory_record *code, uint64_t offset);

/* ---- reading: the MEMORY chunks of a trace ---- */
struct trace;
bool trace_has_memory(const struct trace *t);
/* First all that is told once, in the order of the file, then what happened, in the order of time, each process by
 * itself: BY records come with the latter, before what that thread did. Times are nanoseconds since the start of the
 * trace, numbers are those of the process. Stops when `fn` returns non-zero and returns that; TARE_NOMEM otherwise
 * becomes a status. */
typedef int trace_memory_fn(void *ctx, uint32_t process, const struct memory_record *r);
tare_status trace_memory(struct trace *t, trace_memory_fn *fn, void *ctx, tare_error *err);
/* The same of processes whose stacks were sampled from outside. */
bool trace_has_stacks(const struct trace *t);
tare_status trace_stacks(struct trace *t, trace_memory_fn *fn, void *ctx, tare_error *err);

#endif

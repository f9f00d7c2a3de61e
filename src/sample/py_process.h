/* SPDX-License-Identifier: MIT
 * py_process.h - a CPython interpreter in another process: which one it is, its threads, their stacks, the names of
 * functions. Reads only, while it runs; nothing it says is trusted, and what does not fit together is refused by name
 * (the interpreter) or marked (a stack).
 *
 *   peek.c, elf_loaded.c  bytes and symbols   py_layout.c  offsets   py_process.c  which one, its threads
 *   py_walk.c  stacks                         py_code.c    functions  py_value.c   values of variables */
#ifndef SAMPLE_PY_PROCESS_H
#define SAMPLE_PY_PROCESS_H

#include "core/arena.h"
#include "core/buf.h"
#include "core/map.h"
#include "sample/peek.h"
#include "sample/py_layout.h"

/* ---- functions ---- */

struct py_code {
    uint64_t at, key; /* its address, and what tells it from another that came to lie there */
    const char *name; /* qualified from 3.11 on */
    const char *file;
    uint32_t first_line;
    uint32_t checked;  /* generation it was last looked at in */
    uint64_t number;   /* for whoever writes them down; 0: not yet */
    const char *table; /* of lines */
    size_t table_bytes;
    uint64_t bytecode, bytecode_bytes; /* there; 0 bytes: not known */
    bool generator;                    /* or a coroutine: it has a caller only while it runs */
};

struct py_process {
    struct peek peek;
    struct py_layout at;
    uint32_t version; /* 0x030b0200: 3.11.2; without its micro version before 3.11 */
    uint64_t runtime, code_type;
    uint64_t eval;       /* the function that runs Python; 0: unknown */
    char file[256];      /* what holds the interpreter */
    struct arena arena;  /* names and tables, each once */
    struct map_u64 code; /* address -> place in `codes` + 1 */
    VEC(struct py_code *) codes;
    uint32_t generation; /* raise it now and then: functions are looked at again */
};
#define PY_PROCESS_INIT {.arena = ARENA_INIT}

/* TARE_INVALID: there is no such process. TARE_UNSUPPORTED: it is no Python that can be read, and why. TARE_DENIED: may
 * not be read. Release it whatever it returns. */
tare_status py_open(struct py_process *p, struct peek from, tare_error *err);
void py_release(struct py_process *p);

/* ---- threads ---- */

struct py_thread {
    uint64_t state; /* its address: who it is */
    uint64_t interp;
    uint64_t ident; /* as threading.get_ident() */
    pid_t tid;      /* 0: unknown */
    bool holds_gil;
    bool collects; /* it holds the lock, and garbage is being collected */
    /* what the last look found, so that the next one can be a single read */
    uint64_t window, then;
};
struct py_threads {
    VEC(struct py_thread) items;
    bool gil_known;
};
enum { PY_THREADS_MOST = 20000, PY_INTERPRETERS_MOST = 64 };
/* All threads of all interpreters. What was known of those that are still there is kept. */
tare_status py_threads_read(struct py_process *p, struct py_threads *t, tare_error *err);
/* Who holds the lock now; one read or two. */
void py_gil_read(const struct py_process *p, struct py_threads *t);

/* Is it the interpreter's lock that a thread waits for? `look` as thread_look() left it. */
struct thread_look;
bool py_waits_for_gil(const struct py_process *p, uint64_t interp, const struct thread_look *look);

/* ---- stacks ---- */

enum py_doubt {                 /* why a stack may be wrong; 0: nothing speaks against it */
                PY_MOVED = 1,   /* the thread went on while it was read */
                PY_BROKEN = 2,  /* a frame could not be read, or was none */
                PY_OUTSIDE = 4, /* an instruction that is not of its function */
                PY_CUT = 8      /* deeper than is read */
};
struct py_frame {
    struct py_code *code;
    uint64_t at;     /* the frame itself */
    uint32_t offset; /* of the instruction, in bytes of the function's code */
    bool entry;      /* C called Python here: a native frame stands below it */
};
enum { PY_DEPTH_MOST = 12000 };
struct py_stack {
    VEC(struct py_frame) frames; /* innermost first */
    unsigned doubt;
};
/* The stack of a thread now; false: there is nothing to be read any more (errno). An empty one is good. */
bool py_stack_read(struct py_process *p, struct py_thread *t, struct py_stack *out);
uint32_t py_line(const struct py_process *p, const struct py_frame *f); /* 0: unknown */

/* NULL: what is there is no function, or there is no memory. */
struct py_code *py_code_at(struct py_process *p, uint64_t address);

/* ---- values ---- */

/* A str as UTF-8, at most `most` characters; "" where it is none. */
void py_str(const struct py_process *p, uint64_t object, size_t most, struct buf *out);

enum { PY_LOCALS_MOST = 200 };
/* Values begin as repr() would; nothing of the program runs for it. */
typedef void py_local_fn(void *ctx, const char *name, const char *value);
void py_locals(const struct py_process *p, const struct py_frame *f, py_local_fn *fn, void *ctx);

#endif

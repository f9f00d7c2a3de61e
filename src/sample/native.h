/* SPDX-License-Identifier: MIT
 * native.h - the native stack of a thread of another process, from outside: its registers and a copy of its stack, and
 * the way from frame to frame by the tables of the modules that are mapped there (.eh_frame, read out of its memory;
 * frame pointers where code has none). A thread on a processor has to be held still for it (pause.h); of one that waits
 * the kernel tells where it stands, and what its other registers hold is not known. x86-64.
 *
 *   native_space.c  modules, tables   native_walk.c  stacks   native_merge.c  with those of Python
 *   perf_map.c      names of code made at run time */
#ifndef SAMPLE_NATIVE_H
#define SAMPLE_NATIVE_H

#include "core/eh_frame.h"
#include "core/map.h"
#include "sample/peek.h"
#include "sample/perf_map.h"

struct py_process;
struct py_stack;

/* ---- tables: one for all processes, for most have the same libraries ---- */

struct native_tables;
struct native_tables *native_tables_new(tare_error *err);
void native_tables_free(struct native_tables *t); /* after the spaces that use it; NULL is fine */

/* ---- what is mapped in a process ---- */

struct native_module {
    uint64_t start, end; /* of its code */
    uint64_t bias;       /* added to addresses of the file */
    uint64_t table, table_bytes;
    const char *path;
    char build_id[72]; /* hex; "-": it has none */
    uint64_t number;   /* for whoever writes them down; 0: not yet */
    size_t index;      /* place among the tables' copies + 1 */
    bool tried;
};
struct native_space {
    struct peek peek;
    struct native_tables *tables;
    struct arena arena;                /* paths */
    VEC(struct native_module) modules; /* ascending; those that went are kept until native_look() */
    struct perf_map made;
    uint64_t serial;         /* of what is mapped: another after each look */
    uint64_t looked_ns, gap; /* at the maps; ns until an unknown address is worth another look */
    uint64_t eval;           /* where the function is that runs Python; 0: none */
    uint64_t home, home_end; /* the code it lies in */
};
void native_open(struct native_space *s, struct peek from, struct native_tables *tables);
void native_release(struct native_space *s);
/* Reads anew what is mapped; numbers stay with what stays. */
tare_status native_look(struct native_space *s, tare_error *err);
void native_python(struct native_space *s, const struct py_process *p); /* NULL: it is none any more */

/* ---- one stack ---- */

struct native_hint { /* of a thread: what the last look found */
    uint64_t top;    /* nothing can be read from here on; 0: unknown */
    size_t need;     /* bytes of the stack that frames were on */
    uint64_t sp, pc; /* where it waited */
};
struct native_shot {
    struct eh_regs regs;
    uint64_t from; /* there */
    size_t bytes;
    VEC(uint8_t) copy;
};
void native_shot_release(struct native_shot *s);
/* While it is held still. False: its registers cannot be had (errno). */
bool native_shoot_held(struct native_shot *out, const struct peek *p, pid_t tid, struct native_hint *hint);
/* While it waits, at what thread_look() told. */
bool native_shoot_waiting(struct native_shot *out, const struct peek *p, uint64_t sp, uint64_t pc,
                          struct native_hint *hint);

#define NATIVE_END_MAP(X)                                                      \
    X(WHOLE, "whole") X(NO_TABLES, "code without unwind tables")               \
    X(NO_REGISTER, "a register that is not known of a thread that waits")      \
    X(NO_MEMORY, "its stack could not be read") X(NONSENSE, "tables that make no sense") \
    X(DEEP, "more frames than are recorded")
enum native_end {
#define X(name, text) NATIVE_##name,
    NATIVE_END_MAP(X)
#undef X
        NATIVE_ENDS
};
extern const char *const native_end_words[NATIVE_ENDS];

struct native_frame {
    uint64_t where;  /* of a caller within the call, not behind it */
    uint32_t module; /* place among the modules + 1; 0: none */
    bool eval;       /* it runs functions of Python */
};
enum { NATIVE_DEPTH_MOST = 12000 };
struct native_stack {
    VEC(struct native_frame) frames; /* innermost first */
    enum native_end end;
};
void native_walk(struct native_space *s, const struct native_shot *shot, struct native_stack *out,
                 struct native_hint *hint);

/* ---- with frames of Python ---- */

struct merged_frame {
    bool python;
    uint32_t at; /* place in the one stack or the other */
};
struct merged {
    VEC(struct merged_frame) frames; /* innermost first */
    bool uneven;                     /* not as many places where Python runs as calls of Python from C */
};
/* Each native frame that runs functions of Python makes way for them. */
tare_status native_merge(const struct native_stack *native, const struct py_stack *python,
                         struct merged *out);

#endif

/* SPDX-License-Identifier: MIT
 * snapshot.h - where every thread of a process is right now: Python frames, who holds the lock, what each waits for. */
#ifndef SAMPLE_SNAPSHOT_H
#define SAMPLE_SNAPSHOT_H

#include "sample/py_process.h"
#include "sample/thread_look.h"

struct shot_local {
    const char *name, *value;
};
struct shot_frame {
    const char *name, *file;
    uint32_t line; /* 0: unknown */
    const struct shot_local *locals;
    size_t n_locals;
};
struct shot_thread {
    pid_t tid; /* 0: unknown */
    struct thread_look look;
    char target[300]; /* what the descriptor is that it waits for; "": none, or unknown */
    bool python;      /* known to the interpreter; else of native code alone */
    bool holds_gil, collects;
    unsigned doubt;            /* enum py_doubt */
    struct shot_frame *frames; /* innermost first */
    size_t n;
};
struct snapshot {
    struct arena arena;
    uint32_t version; /* of Python */
    char file[256];   /* that holds the interpreter */
    bool gil_known;
    VEC(struct shot_thread) threads; /* those of Python first */
};
#define SNAPSHOT_INIT {.arena = ARENA_INIT}

tare_status snapshot_take(struct snapshot *s, struct py_process *p, bool locals, tare_error *err);
void snapshot_release(struct snapshot *s);

#endif

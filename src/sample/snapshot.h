/* SPDX-License-Identifier: MIT
 * snapshot.h - where every thread of a process is right now: Python frames, who holds the lock, what each waits for. */
#ifndef SAMPLE_SNAPSHOT_H
#define SAMPLE_SNAPSHOT_H

#include "sample/py_process.h"
#include "sample/thread_look.h"
#include "sample/thread_stack.h"

struct shot_local {
    const char *name, *value;
};
struct shot_frame {
    bool native;
    const char *name,
        *file;     /* of a native frame its name is to be looked up, or NULL, and its file is its module */
    uint32_t line; /* 0: unknown */
    const char *source;   /* of a native frame, once its name was looked up; NULL: unknown */
    const char *build_id; /* of a native frame; NULL: code of no file */
    uint64_t offset;      /* .. its address in that file, or in memory */
    const struct shot_local *locals;
    size_t n_locals;
};
struct shot_thread {
    pid_t tid; /* 0: unknown */
    struct thread_look look;
    char target[300]; /* what the descriptor is that it waits for; "": none, or unknown */
    bool python;      /* known to the interpreter; else of native code alone */
    bool holds_gil, collects;
    bool native;               /* its native frames are among those here */
    enum native_end end;       /* .. as far as this */
    unsigned doubt;            /* enum py_doubt */
    struct shot_frame *frames; /* innermost first */
    size_t n;
};
struct snapshot {
    struct arena arena;
    bool python;
    uint32_t version; /* of Python */
    char file[256];   /* that holds the interpreter */
    bool gil_known;
    VEC(struct shot_thread) threads; /* those of Python first */
};
#define SNAPSHOT_INIT {.arena = ARENA_INIT}

struct snapshot_wish {
    pid_t pid;
    bool locals, native; /* native: threads on a processor are held still while they are read */
};
/* p: NULL: the process is no Python. */
tare_status snapshot_take(struct snapshot *s, struct py_process *p, const struct snapshot_wish *wish,
                          tare_error *err);
void snapshot_release(struct snapshot *s);

#endif

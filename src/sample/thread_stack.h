/* SPDX-License-Identifier: MIT
 * thread_stack.h - one look at a thread: its frames of Python, its native frames, and the two as one stack. A thread on
 * a processor is held still for the reading where that is asked for, or native frames are. */
#ifndef SAMPLE_THREAD_STACK_H
#define SAMPLE_THREAD_STACK_H

#include "sample/native.h"
#include "sample/pause.h"
#include "sample/py_process.h"
#include "sample/thread_look.h"

struct stack_of { /* whose, and how */
    pid_t pid, tid;
    struct py_process *py; /* with `thread`; NULL: of no Python */
    struct py_thread *thread;
    struct native_space *space; /* NULL: without native frames */
    struct native_hint *hint;   /* of this thread, with `space` */
    struct thread_look *look;   /* what it does; of one that waits it may be looked at anew */
    bool hold;                  /* if it runs */
};
struct stack_reading {
    struct pauses held;
    struct py_stack python;
    bool has_python;
    struct native_stack native; /* with has_native */
    bool has_native;
    struct merged merged; /* with has_native */
    struct native_shot shot;
};
void stack_read(struct stack_reading *r, const struct stack_of *of);
void stack_reading_release(struct stack_reading *r);

#endif

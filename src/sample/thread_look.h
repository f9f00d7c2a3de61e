/* SPDX-License-Identifier: MIT
 * thread_look.h - what a thread of another process does at this moment, as the kernel tells it: on a processor, ready,
 * or waiting, and for what. Knows nothing of Python. */
#ifndef SAMPLE_THREAD_LOOK_H
#define SAMPLE_THREAD_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/error.h"
#include "core/vec.h"
#include "trace/memory.h"

struct thread_look {
    char name[32]; /* as the kernel calls it; control characters are replaced */
    enum stack_doing doing;
    bool asked;   /* what it waits for could be read */
    int64_t call; /* number of the system call it waits in; -1: none */
    uint64_t args[6];
    int32_t fd;      /* of I/O; -1: none */
    uint64_t sp, pc; /* of one that waits: where it stands; 0: unknown */
};
/* False: there is no such thread any more. */
bool thread_look(struct thread_look *out, pid_t pid, pid_t tid);

/* "futex", "read"; "" for one without a name here. */
const char *thread_call_name(int64_t call);
/* Interrupted without a signal it waits on, and the program sees nothing of it: so the kernel does with some calls, and
 * lets others fail with EINTR. */
bool thread_call_goes_on(int64_t call);
/* One that was interrupted and goes on: which one, the kernel does not tell. */
bool thread_call_again(int64_t call);
/* What a descriptor of a process is: a path, "pipe", "socket to 10.0.0.7:443". "" where that cannot be known. */
void thread_fd_target(pid_t pid, int32_t fd, char *out, size_t size);

struct thread_ids {
    VEC(pid_t) items; /* ascending */
};
tare_status thread_ids_read(struct thread_ids *t, pid_t pid, tare_error *err);

#endif

/* SPDX-License-Identifier: MIT
 * fork_events.h - every start and end of a process, told by the kernel (proc connector): how many the program started,
 * also those that live between two samples. Needs privileges; without them it says so. When more come at once than the
 * kernel keeps for us, some are lost. */
#ifndef PROBE_FORK_EVENTS_H
#define PROBE_FORK_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/error.h"
#include "core/map.h"
#include "core/vec.h"

struct fork_events {
    int fd; /* -1: not permitted */
    struct map_u64 alive;
    uint64_t started; /* by the program's processes since they were told of */
    VEC(pid_t) fresh; /* told of by the last drain, parents first */
    bool gap;         /* some were lost, or may have been: whoever wants to know must look */
};

/* Never fails: where it is not permitted, fd is -1 and *why says so. */
void fork_events_open(struct fork_events *f, const char **why);
void fork_events_close(struct fork_events *f);

/* A process that is known to be the program's. */
tare_status fork_events_know(struct fork_events *f, pid_t pid, tare_error *err);

/* Take in what came since the last call. */
tare_status fork_events_drain(struct fork_events *f, tare_error *err);

#endif

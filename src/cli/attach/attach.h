/* SPDX-License-Identifier: MIT
 * attach.h - what the files of `tare attach` share. */
#ifndef CLI_ATTACH_H
#define CLI_ATTACH_H

#include "cli/command.h"
#include "report/answer.h"
#include "sample/snapshot.h"

/* A live table of functions, until the time is over; off a terminal one table of all of that time, or of
 * `interval_ns`. */
struct attach_top {
    pid_t pid;
    double hz, budget;                 /* budget: share of a processor */
    uint64_t interval_ns, duration_ns; /* duration_ns 0: no end */
    bool consistent;
};
int attach_top(struct cli *cli, const struct attach_top *of);

/* why: of a process without frames of Python. */
void attach_say_once(struct answer *a, pid_t pid, const struct snapshot *s, const char *why);
/* Finds the names of native frames. */
tare_status attach_name_frames(struct snapshot *s, tare_error *err);

#endif

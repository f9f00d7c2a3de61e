/* SPDX-License-Identifier: MIT
 * guard.h - commands do not outlive the tare that measures them, whatever ends it: a process that does nothing waits
 * for tare's end and then kills the groups that were running. Commands themselves are started as ever: nothing of this
 * is in what is measured. What left its group, as daemons do, is left alone. */
#ifndef SUBJECT_GUARD_H
#define SUBJECT_GUARD_H

#include <sys/types.h>

enum { GUARD_SLOTS = 1024 };

struct guard {
    pid_t pid;   /* 0: there is none */
    int alive;   /* our end of a pipe: its closing is our end */
    pid_t *held; /* shared with it: a group per slot, 0 for none */
};
#define GUARD_INIT  \
    {               \
        0, -1, NULL \
    }

void guard_open(struct guard *g); /* without one, which is no failure, commands may outlive tare */
void guard_hold(struct guard *g, unsigned slot, pid_t group); /* 0: no longer */
void guard_close(struct guard *g);

#endif

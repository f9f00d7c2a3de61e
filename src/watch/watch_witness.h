/* SPDX-License-Identifier: MIT
 * watch_witness.h - was a signal meant for tare alone, or for the whole process group, program and all? The signal does
 * not say. A process of the same group that does nothing knows: what was sent to the group waits in it as well. */
#ifndef WATCH_WATCH_WITNESS_H
#define WATCH_WATCH_WITNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct witness {
    pid_t pid; /* 0: there is none */
};

/* The signals that are to be told apart are blocked by now. It dies with tare, whatever ends that. */
void witness_start(struct witness *w);
/* Which signals (bit n - 1 for signal n) the whole group had since the last question; false: nobody knows. To be asked
 * just after a signal: it waits for the sender to finish. */
bool witness_ask(struct witness *w, uint64_t *group);
void witness_end(struct witness *w);

#endif

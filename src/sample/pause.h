/* SPDX-License-Identifier: MIT
 * pause.h - a thread of another process held still for as long as it is read: ptrace, and let go at once. Only a thread
 * on a processor is worth it. When we are killed, the kernel lets it go. All from one thread of ours. */
#ifndef SAMPLE_PAUSE_H
#define SAMPLE_PAUSE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/vec.h"

struct pauses {
    uint64_t held,
        refused; /* threads that stood still; that could not be made to: traced already, gone, late */
    uint64_t total_ns, longest_ns; /* for which they did: at most */
    uint64_t begun_ns;             /* of the one under way */
    uint64_t patience_ns;          /* how long one is waited for; 0: 200 ms */
    int signal;                    /* that it was about to get: passed on */
    VEC(pid_t) late;               /* asked to stop, but in a place of the kernel where that takes time */
};

/* False: it runs on; read it as it is. */
bool pause_begin(struct pauses *p, pid_t tid);
void pause_end(struct pauses *p, pid_t tid);
/* Those that were late: let go as soon as they stop. Now and then, and before pauses_release(). */
void pause_settle(struct pauses *p);
void pauses_release(struct pauses *p); /* waits a moment for those that are late */

#endif

/* SPDX-License-Identifier: MIT
 * watch_child.h - the program that `tare run` watches: started in tare's own process group with its streams and
 * terminal untouched, sent the signals that were meant for it, and reaped with the kernel's own account of what it
 * used. tare also reaps what the program orphans, so it can be process 1 of a container. */
#ifndef WATCH_WATCH_CHILD_H
#define WATCH_WATCH_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "core/error.h"
#include "watch/watch_gpu.h"
#include "probe/memory_agent.h"

#define WATCH_CHILD_MARK "TARE_WATCHED" /* in the program's environment: there is a tare around it */

struct child {
    pid_t pid;
    int go, failed; /* pipes: a byte lets it start; errno comes back when it cannot */
    int signals;    /* a signalfd */
    sigset_t mask;  /* before */
    struct sigaction chld, pipe, xfsz;
    pid_t witness; /* a process that tells for whom signals are, while the program runs; 0: none */
    bool started, ended, reaped;
    bool interrupted;  /* SIGINT or SIGTERM came while the program ran: the user wants an end */
    bool told_to_end;  /* by a signal that came after the program's end: there is only tare to end */
    int status;        /* of wait4 */
    struct rusage use; /* of the program and of all orphans reaped so far */
    uint64_t start_ns, end_ns;
};

struct child_surroundings {
    const char *trace; /* its TARE_TRACE, or NULL to leave that alone */
    const struct watch_gpu *gpu;
    const struct memory_agent *memory;
    bool ignored_sigpipe; /* it gets SIGPIPE ignored, as tare did */
};
/* Fork, but let the program wait: the smaller tare is now, the less of it is in the program's peak memory. argv stays
 * in use until child_start(). */
tare_status child_fork(struct child *c, char *const *argv, const struct child_surroundings *s,
                       tare_error *err);
/* Let it go. On failure *exit_code is what a shell would give: 127 not found, 126 not executable. */
tare_status child_start(struct child *c, const char *name, int *exit_code, tare_error *err);
void child_drop(struct child *c); /* never started: end it. Else: let go of it, alive or not */

/* Take the signals that came: pass on what was meant for the program. True: children may have ended. */
bool child_signals(struct child *c);

/* The next one that ended, not yet reaped: its pid, 0 for none, -1 when there are no children at all. */
pid_t child_ended(void);
/* Reap it. One that is counted adds to c->use; the program itself fills in status and reaped. */
void child_reap(struct child *c, pid_t pid, bool counted, int *status, struct rusage *use);
int child_exit_code(const struct child *c); /* 128 + n for a signal */

#endif

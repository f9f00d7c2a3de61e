/* SPDX-License-Identifier: MIT
 * watch_load.h - load on the program that is watched, from a `tare bench` beside it: started when the program was,
 * told to wait until that answers, recording its requests into the same trace. It is no part of the program. When it
 * is over the program is told to end, and ended when it does not. */
#ifndef WATCH_WATCH_LOAD_H
#define WATCH_WATCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/error.h"

#define LOAD_SIDE_WAIT "60s" /* for the program to answer */
#define LOAD_SIDE_GRACE_NS UINT64_C(10000000000) /* for the program to end */

struct load_side {
    char *const *words;           /* of `tare bench`, NULL at the end; NULL: there is none */
    pid_t pid;                    /* 0: it does not run */
    bool quiet;                   /* its answer is not shown */
    bool started, ended, stopped; /* ended: before the program did; stopped: by load_side_stop() */
    int status;                   /* of wait */
    uint64_t ended_ns;            /* 0: it has not */
};

/* `trace`: its TARE_TRACE; NULL: none. Its stdout becomes our stderr: stdout is the program's. */
tare_status load_side_start(struct load_side *l, pid_t program, const char *trace, tare_error *err);
/* It has ended: the program, where it still runs (0: it does not), is told to. */
void load_side_ended(struct load_side *l, int status, pid_t program);
/* Who was told long ago is ended. True: this is so now. */
bool load_side_expire(struct load_side *l, uint64_t now_ns, pid_t program);
/* The program has ended, so that nobody answers any more, or the user wants an end. */
void load_side_stop(struct load_side *l);
int load_side_code(const struct load_side *l); /* its exit code */

#endif

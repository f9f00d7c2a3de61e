/* SPDX-License-Identifier: MIT
 * process_tree.h - the processes of a program, found and read again and again: who is new, who is gone, what each has
 * used (process_tree.c), what costs more to know (process_detail.c), and what the kernel tells of starts and ends
 * (fork_events.c). Knows nothing of metrics. */
#ifndef PROBE_PROCESS_TREE_H
#define PROBE_PROCESS_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "core/error.h"
#include "core/map.h"
#include "core/vec.h"
#include "probe/procfs.h"

/* What only grows. The first ones the kernel hands on to a parent that waits for its child. */
enum tree_counter {
    TREE_USER, /* ns */
    TREE_SYSTEM,
    TREE_FAULTS_MINOR,
    TREE_FAULTS_MAJOR,
    TREE_READ, /* bytes */
    TREE_WRITE,
    TREE_READ_CALLS,
    TREE_WRITE_CALLS,
    TREE_INHERITED, /* those before */
    TREE_SWITCH_VOLUNTARY = TREE_INHERITED,
    TREE_SWITCH_INVOLUNTARY,
    TREE_RUN_DELAY, /* ns */
    TREE_COUNTERS
};

struct member {
    pid_t pid;                    /* 0: reaped since the last update */
    int fd;                       /* of its stat, -1: not kept open */
    struct process_stat stat;     /* its name is gone: */
    char name[64];                /* as a label */
    uint64_t own[TREE_COUNTERS];  /* last known; what it inherited from children it waited for included */
    uint64_t gone[TREE_COUNTERS]; /* of ended children, where the kernel does not hand it on */
    /* What ended children had used, until it shows in what the kernel hands on (it does not if SIGCHLD is ignored). */
    uint64_t owed[2], owed_since[2], child_before[2];
    unsigned owed_children;
    bool ended; /* within tree_update() */
    /* process_detail.c */
    bool detailed, measured; /* could be read */
    bool io_denied;
    uint64_t swap_bytes, fds, pss_bytes, uss_bytes;
};

struct process_tree {
    int proc; /* the folder */
    int loadavg;
    pid_t program, us; /* us: parent of its orphans; 0: we are not */
    uint64_t tick_ns;
    size_t keep_open, kept_open;
    VEC(struct member) members; /* parents first */
    size_t dead;                /* of them, with pid 0 */
    struct map_u64 index;       /* pid -> position + 1 */
    VEC(pid_t) ignored;
    uint64_t cursor;    /* the latest pid given out at the last look; 0: unknown */
    VEC(pid_t) missing; /* given out just before it, but not to be seen then */
    uint64_t reaped[TREE_COUNTERS], lost[TREE_COUNTERS];
    uint64_t started; /* processes ever seen: a lower bound, some live between two looks */
    char text[8192];
};

tare_status tree_open(struct process_tree *t, const char *root, pid_t program, tare_error *err);
void tree_close(struct process_tree *t); /* after a failed tree_open(), too */

/* Read all members again, forget those that ended, find new ones. */
tare_status tree_update(struct process_tree *t, tare_error *err);
/* The same where it is known who is new since the last update, parents first. */
tare_status tree_update_told(struct process_tree *t, const pid_t *fresh, size_t n, tare_error *err);

/* See probe.h. */
void tree_reaped(struct process_tree *t, pid_t pid, const struct rusage *usage);
void tree_ignore(struct process_tree *t, pid_t pid);

size_t tree_alive(const struct process_tree *t);

/* The program's sum of a counter, ended processes included. */
uint64_t tree_total(const struct process_tree *t, enum tree_counter c);

/* ---- process_detail.c: I/O, switches and waiting of each thread, descriptors, swap; and memory split by sharing. Read
 * of all processes, as often as a set share of the time allows ---- */

struct detail_budget {
    uint64_t last_ns;
    int64_t credit_ns; /* what may be spent now; below 0: not yet */
};
struct detail_moment {
    uint64_t ns;
    bool thorough; /* it may cost more */
};

enum detail_kind { DETAIL_COUNTS, DETAIL_SHARING, DETAIL_KINDS };

/* false: not this time, what the members hold is old. */
bool detail_read(struct process_tree *t, enum detail_kind kind, struct detail_budget *b,
                 struct detail_moment now);

/* ---- fork_events.c: every start and end of a process, told by the kernel (proc connector), also of those that live
 * between two samples. Needs privileges. When more come at once than the kernel keeps for us, some are lost ---- */

struct fork_events {
    int fd; /* -1: not permitted */
    struct map_u64 alive;
    uint64_t started; /* by the program's processes since they were told of */
    VEC(pid_t) fresh; /* told of by the last drain, parents first */
    VEC(pid_t) ended; /* told of as ended: the kernel does so while they can still be seen */
    bool gap;         /* some were lost, or may have been: whoever wants to know must look */
};

/* Never fails: where it is not permitted, fd is -1 and *why says so. */
void fork_events_open(struct fork_events *f, const char **why);
void fork_events_close(struct fork_events *f);

/* A process that is known to be the program's. */
tare_status fork_events_know(struct fork_events *f, pid_t pid, tare_error *err);

/* Take in what came since the last call. */
tare_status fork_events_drain(struct fork_events *f, tare_error *err);

/* Forget those that ended and are no longer seen in `t`. */
void fork_events_forget(struct fork_events *f, const struct process_tree *t);

#endif

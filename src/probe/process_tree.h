/* SPDX-License-Identifier: MIT
 * process_tree.h - the processes of a program, found and read again and again: who is new, who is gone, what each has
 * used. Knows nothing of metrics. Names, states and numbers come from /proc/PID/stat, parsed from the last ')'. */
#ifndef PROBE_PROCESS_TREE_H
#define PROBE_PROCESS_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "core/error.h"
#include "core/map.h"
#include "core/vec.h"

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

/* What reading /proc/PID/stat gives. */
struct tree_stat {
    pid_t parent;
    char state;
    char name[64];
    bool thread, kernel;                             /* not the first thread of a process; a kernel thread */
    uint64_t user, system, child_user, child_system; /* ticks */
    uint64_t minor, child_minor, major, child_major;
    uint64_t threads, started, rss_pages;
};
bool tree_stat_parse(struct tree_stat *out, const char *text);

struct member {
    pid_t pid; /* 0: reaped since the last update */
    int fd;    /* of its stat, -1: not kept open */
    struct tree_stat stat;
    uint64_t own[TREE_COUNTERS];  /* last known; what it inherited from children it waited for included */
    uint64_t gone[TREE_COUNTERS]; /* of ended children, where the kernel does not hand it on */
    /* What ended children had used, until it shows in what the kernel hands on (it does not if SIGCHLD is ignored). */
    uint64_t owed[2], owed_since[2], child_before[2];
    unsigned owed_children;
    bool ended; /* within tree_update() */
    /* process_detail.c */
    bool detailed, measured; /* read at least once */
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
void tree_close(struct process_tree *t);

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

#endif

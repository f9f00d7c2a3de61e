/* SPDX-License-Identifier: MIT
 * proclist.h - all processes that can be seen, scan after scan, for a table of them: one small file per process and
 * scan, the rest only when it may have changed. Names and command lines are the bytes that the processes chose: escape
 * them before they are shown. A process that goes away during a scan is simply not in it. The threads of one process
 * are such rows, too, without command lines. */
#ifndef PROBE_PROCLIST_H
#define PROBE_PROCLIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/error.h"
#include "core/vec.h"

struct proc_row {
    pid_t pid, parent;
    uid_t uid;
    char state; /* R S D Z T ... */
    bool kernel;
    bool io_denied; /* its I/O may not be read */
    unsigned threads;
    uint64_t rss_bytes;
    double user_s, system_s; /* its own since it began */
    double cpu; /* processors it used since the scan before: 1 is one of them all the time; NAN: unknown */
    double read_bytes, write_bytes; /* from and to storage since it began; NAN: unknown */
    double read_rate, write_rate;   /* per second; NAN: unknown */
    char *name;                     /* what the kernel calls it */
    char *command;                  /* its command line with blanks between words; "" for kernel threads */
    uint64_t started;               /* in clock ticks since boot: with the pid, who it is */
    uint64_t ticks, io_ns;          /* of the values above */
};

struct proc_rows {
    struct proc_row *items;
    size_t n, cap;
};

struct proclist {
    struct proc_rows rows, before; /* by pid; of this scan, and within one of the scan before */
    size_t denied;                 /* processes there are that may not be read (hidepid) */
    int folder;                    /* of /proc, or of a process's threads; -1: not open */
    bool threads;
    double tick_s, page_bytes;
    uint64_t scans, at_ns;
    VEC(pid_t) pids;
};
#define PROCLIST_INIT {.folder = -1}

/* `root` is put before /proc: "" on this machine, a made-up tree in tests. */
tare_status proclist_open(struct proclist *p, const char *root, tare_error *err);
/* The threads of process `pid`; none once it has ended. TARE_IO: there is no such process. */
tare_status proclist_open_threads(struct proclist *p, const char *root, pid_t pid, tare_error *err);
/* Look at all processes; `now_ns` is CLOCK_MONOTONIC_RAW. On failure the rows are those of the scan before. */
tare_status proclist_scan(struct proclist *p, uint64_t now_ns, tare_error *err);
void proclist_close(struct proclist *p);

#endif

/* SPDX-License-Identifier: MIT
 * pages.h - pages of a mapped file that are not there: its disk is full and did not say so, or somebody truncated it.
 * Touching one is a SIGBUS in the program that is recorded. The guard puts memory in its place, and who records is told
 * to end it. For every library of ours that maps a live file; each has a copy of its own, and they may be in one
 * program. Only system calls, no allocation. */
#ifndef TRACE_PAGES_H
#define TRACE_PAGES_H

#include <stdbool.h>

/* Both are called in a signal handler. */
struct pages_owner {
    bool (*owns)(const char *page); /* of a mapping of ours that a file is behind, and of this process */
    void (*lost)(void);             /* a page of it was missing: nothing more may be recorded */
};

/* Before the first page is touched; again in a forked child that maps a file. A program that handles SIGBUS itself
 * keeps its handler, and is not guarded. */
void pages_guard(const struct pages_owner *owner);

/* By each thread before it touches the first page: where the guard stands, SIGBUS is no longer blocked in this
 * thread. A fault that is blocked ends the program, whoever would handle it, and many threads block all signals. */
void pages_guard_thread(void);

#endif

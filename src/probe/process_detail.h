/* SPDX-License-Identifier: MIT
 * process_detail.h - what costs more to know of a process than one line of /proc: I/O, switches and waiting of each
 * thread, descriptors, swap; and memory split by sharing. Read in turn, process after process, for no more than a set
 * share of time. */
#ifndef PROBE_PROCESS_DETAIL_H
#define PROBE_PROCESS_DETAIL_H

#include "probe/process_tree.h"

struct detail_budget {
    uint64_t last_ns;
    int64_t credit_ns; /* what may be spent now */
    size_t next;       /* whose turn it is */
};

enum detail_kind { DETAIL_COUNTS, DETAIL_SHARING, DETAIL_KINDS };

/* Go on with one kind where the last call left, as long as the credit lasts (at least one process if there is any). */
void detail_read(struct process_tree *t, enum detail_kind kind, struct detail_budget *b, uint64_t now_ns);

/* Why a file of process `pid` cannot be read, NULL: it can. */
const char *detail_refused(struct process_tree *t, pid_t pid, const char *name);

#endif

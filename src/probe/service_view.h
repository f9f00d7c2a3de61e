/* SPDX-License-Identifier: MIT
 * service_view.h - what the processes of a service did between two moments: processors, its busiest thread, threads
 * that waited for a processor, memory. Two readings of /proc; nothing is attached to, nothing is changed. */
#ifndef PROBE_SERVICE_VIEW_H
#define PROBE_SERVICE_VIEW_H

#include "core/vec.h"
#include "probe/process_tree.h"
#include "run/run.h"

struct service_thread {
    pid_t pid, tid;
    uint64_t ran_ns, waited_ns; /* on a processor; ready, but without one; since it began */
};

struct service_threads {
    struct service_thread *items;
    size_t n, cap;
};

struct service_view { /* zeroed: none */
    struct process_tree tree;
    struct service_threads before, after;
    uint64_t began_ns, ran_before;
    bool is_open;
};

/* Begins. TARE_IO, with the reason: there is no such process, or it may not be read. */
tare_status service_view_begin(struct service_view *v, pid_t pid, tare_error *err);
/* Ends it, and tells of what was between; texts go to the run's arena. A process that is gone tells nothing. */
tare_status service_view_end(struct service_view *v, struct run *run, struct run_server *out,
                             tare_error *err);
void service_view_release(struct service_view *v);

#endif

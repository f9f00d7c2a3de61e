/* SPDX-License-Identifier: MIT
 * watch.h - what a user asked `tare run` for, and the steps from there to an answer. One file each: cmd_run.c (the
 * command line and the flow), watch_places.c (where things go), watch_child.c (the program), watch_hook.c (what alerts
 * start), watch_loop.c (sampling), watch_record.c (the document). */
#ifndef WATCH_WATCH_H
#define WATCH_WATCH_H

#include "analyze/watch/alert.h"
#include "analyze/watch/course.h"
#include "analyze/watch/system_report.h"
#include "cli/cli.h"
#include "cli/history_arg.h"
#include "watch/watch_child.h"
#include "watch/watch_hook.h"
#include "probe/probe.h"
#include "run/run.h"

struct watch_options {
    char **command;
    struct duration interval;
    const char *probe_names; /* as written */
    struct opt_list probes, alerts;
    bool no_default_alerts, detail, wait_all;
    const char *on_alert, *webhook;
    const char *country;
    double grid; /* g/kWh; 0: not given */
    const char *output, *trace, *html;
    struct history_args history;
    bool no_save, json, quiet;
};

struct watch_alert { /* an alert that fired */
    size_t rule;
    uint64_t start_ns, end_ns; /* end 0: has not cleared */
    double value;
};

struct watcher {
    struct cli *cli;
    const struct watch_options *args;
    struct child child;
    struct hooks hooks;
    struct probes probes;
    struct deriver *deriver;
    struct alerts *alerts;
    struct alert_events events;
    VEC(struct watch_alert) fired;
    struct course course;
    struct system_report *report;
    struct samples_writer *writer; /* NULL: no trace */
    const char *run_id;
    uint64_t samples, late, lost;
    tare_error lost_why; /* of the first */
    size_t alive;        /* of the program when it was left */
};

/* Before the program starts: probes and rules; then, right before, a first sample, from which counters count. */
tare_status watch_open(struct watcher *w, tare_error *err);
void watch_begin(struct watcher *w);
/* Until the program has ended, or all that it started (wait_all). Trouble is counted, never fatal. */
void watch_until_end(struct watcher *w);
void watch_close(struct watcher *w);

/* watch_record.c: the document of what was seen. */
tare_status record_run(struct run *run, const struct watcher *w, tare_error *err);

#endif

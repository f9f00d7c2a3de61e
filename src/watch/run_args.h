/* SPDX-License-Identifier: MIT
 * run_args.h - what a user asked `tare run` for, and the steps from there to an answer. One file each: cmd_run.c (the
 * command line and the flow), run_places.c (where things go), run_child.c (the program), run_hook.c (what alerts
 * start), run_watch.c (sampling), run_record.c (the document). */
#ifndef CLI_RUN_ARGS_H
#define CLI_RUN_ARGS_H

#include "analyze/watch/alert.h"
#include "analyze/watch/course.h"
#include "analyze/watch/system_report.h"
#include "cli/cli.h"
#include "cli/history_arg.h"
#include "watch/run_child.h"
#include "watch/run_hook.h"
#include "probe/probe.h"
#include "run/run.h"

struct run_args_watch {
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

struct fired { /* an alert that fired */
    size_t rule;
    uint64_t start_ns, end_ns; /* end 0: has not cleared */
    double value;
};

struct watch {
    struct cli *cli;
    const struct run_args_watch *args;
    struct child child;
    struct hooks hooks;
    struct probes probes;
    struct deriver *deriver;
    struct alerts *alerts;
    struct alert_events events;
    VEC(struct fired) fired;
    struct course course;
    struct system_report *report;
    struct samples_writer *writer; /* NULL: no trace */
    const char *run_id;
    uint64_t samples, late, lost;
    tare_error lost_why; /* of the first */
    size_t alive;        /* of the program when it was left */
};

/* Before the program starts: probes and rules; then, right before, a first sample, from which counters count. */
tare_status watch_open(struct watch *w, tare_error *err);
void watch_begin(struct watch *w);
/* Until the program has ended, or all that it started (wait_all). Trouble is counted, never fatal. */
void watch_until_end(struct watch *w);
void watch_close(struct watch *w);

/* run_record.c: the document of what was seen. */
tare_status record_run(struct run *run, const struct watch *w, tare_error *err);

#endif

/* SPDX-License-Identifier: MIT
 * watch.h - watching a program: all that `tare run` does between its command line and its answer. What there is to say
 * meanwhile goes to the caller's `say`, what was seen into a run document and a trace; never prints. One file each:
 * watch.c (the flow), watch_places.c (where things go), watch_child.c (the program), watch_loop.c (samples and alerts),
 * watch_hook.c (what alerts start), watch_load.c (load beside it), watch_send.c (live metrics), watch_stacks.c (where
 * threads are), watch_record.c (the document).
 *
 *     places_choose(&w.places, &options, &run, err);
 *     watch_program(&w, &run, &exit_code, err);       // TARE_OK: it has run; w.recorded: the document is whole
 *     places_save(&w.places, &options, &run, path, err);
 *     watch_release(&w); */
#ifndef WATCH_WATCH_H
#define WATCH_WATCH_H

#include <limits.h>

#include "analyze/watch/alert.h"
#include "analyze/watch/course.h"
#include "analyze/watch/system_report.h"
#include "core/clock.h"
#include "probe/probe.h"
#include "run/run.h"
#include "watch/watch_child.h"
#include "watch/watch_hook.h"
#include "watch/watch_load.h"
#include "watch/watch_send.h"
#include "watch/watch_stacks.h"

enum watch_tone {
    WATCH_ALERT,
    WATCH_WARNING
}; /* alerts come while the program runs: do not wait for a reader */

struct watch_options {
    char **command;                            /* ends with NULL */
    struct duration interval;                  /* between samples */
    const char *const *probes, *const *alerts; /* names; rules beside the default ones */
    size_t n_probes, n_alerts;                 /* n_probes 0: all that see anything here */
    bool no_default_alerts, detail, wait_all;
    const char *on_alert, *webhook; /* NULL: none */
    const char *country;            /* of the grid; NULL: not given */
    double grid;                    /* g/kWh; 0: not given */
    const char *output, *trace;     /* files; NULL: not named */
    const char *output_dir;
    bool no_save;
    struct watch_gpu gpu;       /* record what GPUs do */
    struct memory_agent memory; /* record who allocates */
    struct watch_stacks stacks; /* sample where threads are */
    bool load_quiet;            /* its answer is not shown */
    char *const *load;          /* words of `tare bench` for load beside it; NULL: none */
    const char *server, *token; /* live metrics go there; NULL: nowhere */
    bool ignored_sigpipe;       /* before tare ignored it */
    void (*say)(void *ctx, enum watch_tone tone, const char *text);
    void *say_ctx;
};
void watch_say(const struct watch_options *o, enum watch_tone tone, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- where the trace and the document go: both have one name, which is taken before the program starts ---- */

struct watch_places {
    bool beside;               /* the trace lies beside the document */
    char stem[PATH_MAX];       /* of both, when tare chose the name; "": it did not */
    char trace[PATH_MAX];      /* "": none */
    char named[PATH_MAX + 16]; /* as TARE_TRACE spells it: absolute, with %% for % */
};

/* --trace, else as the document is called, else TARE_TRACE, else a new name where documents are kept. A name that
 * cannot be taken is no more than a warning; TARE_INVALID: the names contradict each other. */
tare_status places_choose(struct watch_places *p, const struct watch_options *o, const struct run *run,
                          tare_error *err);
/* Write the document. Its path to `path`, unless the user named it. */
tare_status places_save(const struct watch_places *p, const struct watch_options *o, const struct run *run,
                        char path[PATH_MAX], tare_error *err);
void places_leave(const struct watch_places *p); /* a name that was taken and not used is free again */

/* ---- the watching ---- */

struct watch_alert { /* that fired */
    size_t rule;
    uint64_t start_ns, end_ns; /* end 0: has not cleared */
    double value;
    const char *action; /* of the rule, or "" */
};

struct watcher {
    const struct watch_options *options;
    struct watch_places places;
    struct child child;
    struct hooks hooks;
    struct load_side load;
    struct probes probes;
    struct deriver *deriver;
    struct alerts *alerts;
    struct alert_events events;
    VEC(struct watch_alert) fired;
    struct course course;
    struct system_report *report;
    struct samples_writer *writer; /* NULL: no trace */
    struct sender *sender;         /* NULL: no live metrics */
    struct stacks_watch *stacks;   /* NULL: not asked for */
    const char *run_id;
    size_t noted; /* of what the probes told, in the trace already */
    uint64_t samples, late, lost;
    tare_error lost_why;   /* of the first */
    size_t alive;          /* of the program when it was left */
    bool recorded, traced; /* there is a document; there is a trace */
};
#define WATCHER_INIT(o) {.options = (o), .course = COURSE_INIT, .probes = {.blind = BUF_INIT}}

/* Start the program, sample until it has ended (or, with wait_all, all that it started), and fill in `run`. A failure
 * means that nothing was run; *exit_code is then set only when the program is to blame, as a shell would: 126, 127. */
tare_status watch_program(struct watcher *w, struct run *run, int *exit_code, tare_error *err);
void watch_release(struct watcher *w); /* also after a failure */

/* ---- between the files ---- */

/* watch_loop.c: a first sample, from which counters count; then until the end. Trouble is counted, never fatal. */
void watch_begin(struct watcher *w);
void watch_until_end(struct watcher *w);

/* watch.c: what a reader of the samples should know, as far as it is new. */
void watch_note_told(struct watcher *w);

/* watch_record.c */
tare_status watch_record(struct run *run, const struct watcher *w, tare_error *err);

#endif

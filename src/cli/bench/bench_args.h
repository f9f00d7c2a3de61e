/* SPDX-License-Identifier: MIT
 * bench_args.h - what a user asked `tare bench` for, and the steps from there to an answer. One file each:
 * bench_options.c (the command line), bench_open.c (subjects), bench_python.c (Python functions), bench_check.c
 * (accuracy), bench_layers.c (layers), bench_repeat.c (several launches), bench_baseline.c (against an earlier run),
 * bench_anchor.c (against a frozen build), cmd_bench.c (the flow). */
#ifndef CLI_BENCH_ARGS_H
#define CLI_BENCH_ARGS_H

#include "analyze/judge/accuracy.h"
#include "analyze/judge/judge.h"
#include "bench/bench.h"
#include "cli/case_grid.h"
#include "cli/cli.h"
#include "cli/history_arg.h"

struct bench_args {
    /* what */
    const char *model;  /* file; NULL: a command or a synthetic model */
    const char *python; /* FILE.py:NAME or MODULE:NAME; then `model` is the word that named it */
    const char *length; /* words of its texts, a list */
    const char *synth;  /* architecture */
    const char *entry;  /* of the suite; NULL: none, or without a name */
    char **command;     /* NULL: none */
    struct opt_list variants, runtimes, session_config;
    const char *inputs, *prepare;
    bool shell, ignore_failure, no_arena;
    struct duration timeout;
    int64_t optimization;
    struct grid grid;
    /* how */
    struct bench_plan plan;
    struct duration budget;
    int arrivals, percentile;
    uint64_t concurrency, per_run;
    const char *rate, *warmup, *unit, *scenario;
    uint64_t repeat; /* whole benches, each in a process of its own */
    struct duration pause;
    const char
        *launch_document; /* this process is one of them: the document goes there, and nothing else is said */
    VEC(char *) words;    /* the command line as it was, NULL at its end, for those processes */
    /* looked into */
    bool layers;
    struct opt_list groups; /* patterns; none: by the structure of names */
    /* judged by */
    struct opt_list targets;
    VEC(struct target) parsed;
    int objective;
    struct duration latency_limit;
    const char *expect;
    int metric;
    bool validate;
    double max_drop;
    struct opt_list baseline, fail_on;
    bool strict, force;
    const char *anchor, *anchor_name; /* a frozen build; what it is called in the history */
    struct duration anchor_budget;
    /* answered where */
    const char *csv, *md, *junit, *html;
    struct history_args history; /* and the folder of run documents */
    bool json, no_save;
};

/* Parse and validate. 0: go on; anything else: return it. Always release. */
int bench_args_read(struct cli *cli, struct bench_args *a, int argc, char **argv);
void bench_args_release(struct bench_args *a);

/* The subjects named, opened: model or command, variants, runtimes; kept in a->grid.subjects. */
struct bench_subjects {
    VEC(struct subject *) opened;
    VEC(char *) names;
    char *built_in; /* path of the synthetic model; NULL: none */
};
tare_status bench_open(struct cli *cli, struct bench_args *a, struct bench_subjects *s);
void bench_close(struct bench_subjects *s);

/* A word that names a Python function; what may be asked of one; the function itself in a Python process. */
bool bench_python_named(const char *word);
int bench_python_choose(struct cli *cli, struct bench_args *a, int n, char **args);
tare_status bench_python_open(struct cli *cli, const struct bench_args *a, struct subject **out);

/* Compare each case's outputs with --expect, or with the first case's; fills accuracy. *dropped: beyond --max-drop. */
tare_status bench_check(struct cli *cli, const struct bench_args *a, struct run *run,
                        const struct tensor_set *outputs, size_t *dropped);

/* --repeat: run the same command line in that many fresh processes, one after another, and make their documents one.
 * *worst is the worst of their exit codes. */
tare_status bench_repeat(struct cli *cli, const struct bench_args *a, struct run *out, int *worst);
/* This process is one of the launches: it ends when the tare that started it is gone. */
void bench_launch_bound(void);

/* --baseline: judge the run against an earlier one, after its own answer. The exit code of the comparison. */
int bench_baseline(struct cli *cli, const struct bench_args *a, const struct run *run);

/* --anchor: each case in turn with a frozen build of the same thing; the ratios become part of the run. What fails is
 * said in the document: the measurement was made already. */
int bench_anchor_check(struct cli *cli, const struct bench_args *a);
tare_status bench_anchor(struct cli *cli, struct bench_args *a, struct run *run);
void bench_anchor_show(struct cli *cli, const struct run *run);

/* Layers of each case by a pass of its own with the runtime's profiler, their cost, the roof, the graph with and
 * without optimisation. What fails is said in the document: the measurement was made already. */
tare_status bench_layers(struct cli *cli, const struct bench_args *a, struct run *run);
bool bench_layers_takes(const char *word);
tare_status bench_layers_parse(void *args, const char *text, tare_error *err);
/* clang-format off */
#define BENCH_LAYERS_ROW(args) \
    {OPT_ROW_(CALLBACK, 0, "layers", ctx, args, \
              "time and cost of each layer, by a pass of its own; patterns group them"), \
     .callback = bench_layers_parse, .takes = bench_layers_takes, .arg = "[<pattern,..>]"}
#define BENCH_MODEL_ROWS(a) \
    OPT_GROUP("Models"), \
    OPT_PATH(0, "inputs", &(a)->inputs, "<path>", \
             "an .npz, an .npy, a folder of them, or an ONNX test_data_set; for Python functions a text per " \
             "line, a .json list or an .npy"), \
    OPT_STRING(0, "synth", &(a)->synth, "<arch>", \
             "weigh a synthetic model of this architecture (tare synth --list)"), \
    OPT_WITH(OPT_NO_DEFAULT, \
             OPT_ROW_(INT, 0, "optimization", sint, &(a)->optimization, \
                      "the runtime's graph optimisation level: 0, 1, 2, 99"), \
             .lo = -1, .hi = 99), \
    OPT_LIST(0, "session-config", &(a)->session_config, "<key=value>", "passed to the runtime"), \
    OPT_FLAG(0, "no-arena", &(a)->no_arena, "let the runtime allocate without its arena")
#define BENCH_REPEAT_ROWS(a) \
    OPT_UINT_IN(0, "repeat", &(a)->repeat, 1, 1000, "whole benches, each in a fresh process; their spread is told"), \
    OPT_WITH(OPT_NO_DEFAULT, \
             OPT_ROW_(DURATION, 0, "pause", duration, &(a)->pause, \
                      "between the starts of two such at least; 30s makes them separate evidence"), \
             .hi = 3600000000000), \
    OPT_WITH(OPT_HIDDEN | OPT_NO_ENV | OPT_NO_DEFAULT, \
             OPT_ROW_(STRING, 0, "launch-document", string, &(a)->launch_document, "one of --repeat"), \
             .arg = "<file>")
#define BENCH_BASELINE_ROWS(a) \
    OPT_GROUP("Against an earlier run"), \
    OPT_LIST(0, "baseline", &(a)->baseline, "<run>", \
             "file, folder, @name or id in the history; exit 1 on a regression"), \
    OPT_LIST(0, "fail-on", &(a)->fail_on, "<limit>", \
             "what alone fails it, as in latency.p95>5%: surely worse by more than that"), \
    OPT_FLAG(0, "strict", &(a)->strict, "exit 3 when the comparison is inconclusive or unverified"), \
    OPT_FLAG(0, "force", &(a)->force, "compare also with another machine, unit or load")
#define BENCH_ANCHOR_ROWS(a) \
    OPT_GROUP("Against an anchor"), \
    OPT_STRING(0, "anchor", &(a)->anchor, "<model|command>", \
             "a frozen build to measure in turn with this one; tare trend follows the ratio"), \
    OPT_STRING(0, "anchor-name", &(a)->anchor_name, "<name>", \
             "what the history calls it (default: the file and its hash, or the command)"), \
    OPT_TIME_IN(0, "anchor-budget", &(a)->anchor_budget, 1000000, INT64_MAX / 4, "time for that, each case")
#define BENCH_COMMAND_ROWS(a) \
    OPT_GROUP("Commands"), \
    OPT_FLAG(0, "shell", &(a)->shell, "the command is a line for /bin/sh"), \
    OPT_STRING(0, "prepare", &(a)->prepare, "<line>", "shell line before each run, not timed"), \
    OPT_WITH(OPT_NO_DEFAULT, \
             OPT_ROW_(DURATION, 0, "timeout", duration, &(a)->timeout, \
                      "end a run that takes longer (Python functions, too)"), \
             .hi = INT64_MAX), \
    OPT_FLAG(0, "ignore-failure", &(a)->ignore_failure, "a non-zero exit status is no failure")
/* clang-format on */

#endif

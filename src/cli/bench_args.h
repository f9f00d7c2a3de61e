/* SPDX-License-Identifier: MIT
 * bench_args.h - what a user asked `tare bench` for, and the steps from there to an answer. One file each:
 * bench_options.c (the command line), bench_open.c (subjects), bench_check.c (accuracy), bench_layers.c (layers),
 * cmd_bench.c (the flow). */
#ifndef CLI_BENCH_ARGS_H
#define CLI_BENCH_ARGS_H

#include "analyze/accuracy.h"
#include "analyze/judge.h"
#include "bench/bench.h"
#include "cli/case_grid.h"
#include "cli/cli.h"
#include "cli/history_arg.h"

struct bench_args {
    /* what */
    const char *model; /* file; NULL: a command or a synthetic model */
    const char *synth; /* architecture */
    const char *entry; /* of the suite; NULL: none, or without a name */
    char **command;    /* NULL: none */
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
    /* answered where */
    const char *csv, *md, *junit;
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

/* Compare each case's outputs with --expect, or with the first case's; fills accuracy. *dropped: beyond --max-drop. */
tare_status bench_check(struct cli *cli, const struct bench_args *a, struct run *run,
                        const struct tensor_set *outputs, size_t *dropped);

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
/* clang-format on */

#endif

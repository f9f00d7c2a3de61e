/* SPDX-License-Identifier: MIT
 * bench_args.h - `tare bench`, step by step. Each step makes a struct of its own from those before it, which nothing
 * changes afterwards:
 *     the command line  -> struct bench_args      bench_options.c
 *     what to do        -> struct bench_planned   bench_plan.c
 *     what to measure   -> struct bench_subjects  bench_plan.c
 *     measured, judged, answered                  cmd_bench.c
 * One file each for what only some benches have: bench_check.c (accuracy), bench_layers.c (layers), bench_memory.c
 * (allocations), bench_repeat.c (several launches), bench_anchor.c (against a frozen build), bench_http.c (services),
 * bench_llm.c (language models), bench_find.c (the highest rate of a service). */
#ifndef CLI_BENCH_ARGS_H
#define CLI_BENCH_ARGS_H

#include "analyze/judge/accuracy.h"
#include "analyze/judge/judge.h"
#include "analyze/judge/rate_search.h"
#include "bench/bench.h"
#include "cli/case_grid.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/asking.h"
#include "cli/bench/bench_answers.h"
#include "load/llm_ask.h"
#include "probe/memory_agent.h"
#include "subject/kserve_load.h"
#include "report/run/run_report.h"

/* ---- the command line ---- */

struct http_args {
    struct asking_args asking;
    uint64_t pid; /* 0: not said */
    bool find_rate;
    struct duration wait; /* for the service to answer */
    const char *replay;   /* a log */
    double speed;
    const char *expect_at; /* where in an answer what --expect has is; NULL: all of it */
};

struct llm_args {
    bool on, cold, exact, whole, kserve, binary;
    const char *model, *prompts, *slo;
    uint64_t prefix_words, output_tokens; /* 0: not said */
};

struct bench_args {
    /* what */
    unsigned kind;      /* KIND_MODEL, .. */
    const char *model;  /* file; NULL: another kind, a synthetic model, or nothing named */
    const char *python; /* FILE.py:NAME or MODULE:NAME */
    const char *url;    /* of a service */
    char **command;
    const char *synth; /* architecture */
    const char *entry; /* of the suite; NULL: none, or without a name */
    const char *name;  /* of the subject; NULL: its own */
    struct opt_list variants;
    struct model_args setup;
    struct command_args call;
    struct http_args http;
    struct llm_args llm;
    const char *length; /* words of a Python function's texts: one more dimension of the grid */
    /* how */
    struct duration budget;
    double precision;
    int arrivals, percentile;
    const char *concurrencies; /* as it was said; */
    uint64_t concurrency;      /* the first */
    uint64_t min_runs, max_runs, per_run, seed;
    const char *rate, *warmup, *unit, *scenario;
    uint64_t repeat; /* whole benches, each in a process of its own */
    struct duration pause;
    const char
        *launch_document; /* this process is one of them: the document goes there, and nothing is said */
    VEC(char *) words;    /* the command line as it was, NULL at its end, for those processes */
    /* looked into */
    bool layers;
    struct opt_list groups; /* patterns; none: by the structure of names */
    bool memory;
    struct memory_agent agent; /* where `memory` */
    uint64_t memory_pass; /* this process has the agent in it, and runs that case, from 1, for it; 0: none */
    /* judged by */
    struct opt_list targets;
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
    const char *also[RUN_FORMATS]; /* files beside the answer, by format; "-": in its place */
    const char *html;
    struct history_args history; /* and the folder of run documents */
    bool json, no_save;
};

/* Read the command line. 0: go on; anything else: return it. Always release. */
int bench_args_read(struct cli *cli, struct bench_args *a, int argc, char **argv);
void bench_args_release(struct bench_args *a);
bool bench_args_name_a_subject(const struct bench_args *a);

/* ---- the plan ---- */

/* What --expect holds: lines, or arrays. */
struct bench_expected {
    struct expected lines;
    struct tensor_set arrays;
    bool numbered; /* files of a folder, in the order of the outputs */
};

/* Where requests are made and answers read as a protocol wants it (bench_llm.c). */
struct bench_protocol {
    bool opened; /* `ask` */
    struct llm_ask ask;
    struct llm_pool pool;
    struct kserve_load kserve;
    struct slo slo;
};

/* What a service is asked, and how often. */
struct bench_service {
    struct bench_protocol protocol;
    struct asking asking;
    struct bench_replay replay; /* name NULL: none */
    VEC(double) rates;
    struct grid_ints concurrency;
    struct bench_answers answers;
};

struct bench_planned {
    const struct bench_args *args;
    struct bench_service service;
    const char *synth; /* the architecture to make a model of; NULL: the model has a file, or there is none */
    struct bench_plan plan; /* its cases come with the subjects */
    int64_t preset_batch;   /* of the scenario, where the user does not say one; 0: none */
    struct grid grid;
    VEC(struct target) targets;
    struct rate_limits limits; /* of --find-rate; n 0: the rates are given */
    struct bench_expected expected;
};

/* What cannot be read, or means nothing, is better known now than after minutes of measuring. `built_in`: nothing was
 * named, so the built-in model is measured. 0, or the exit code after the user was told. Always release. */
int bench_make_plan(struct cli *cli, const struct bench_args *a, bool built_in, struct bench_planned *out);
void bench_planned_release(struct bench_planned *p);

/* ---- the subjects ---- */

struct bench_subjects {
    VEC(struct subject *) opened;
    VEC(struct grid_subject) named; /* the same, with what tells them apart */
    struct arena arena;             /* of names */
};
tare_status bench_open(struct cli *cli, const struct bench_planned *p, const char *model,
                       struct bench_subjects *s);
void bench_close(struct bench_subjects *s);

/* The file of the model, made first if it is a synthetic one that is not in the user's cache yet. Owned; NULL: the
 * subject is no model. */
tare_status bench_model_file(struct cli *cli, const struct bench_planned *p, char **out);

/* ---- services ---- */

struct opt *bench_http_rows(struct bench_args *a, struct opt *to);
struct opt *bench_llm_rows(struct bench_args *a, struct opt *to);
/* Puts its source and its reader where requests are made otherwise. */
int bench_protocol_plan(struct cli *cli, const struct bench_args *a, struct bench_protocol *out,
                        struct asking *to);
void bench_protocol_release(struct bench_protocol *q);
/* Reads what is sent. 0, or the exit code after the user was told. */
int bench_service_plan(struct cli *cli, const struct bench_args *a, const struct bench_expected *expected,
                       struct bench_service *out);
void bench_service_release(struct bench_service *s);
tare_status bench_service_open(const struct bench_planned *p, struct subject **out, tare_error *err);
/* One for each rate or concurrency. Release them whatever the result. */
tare_status bench_service_cases(const struct bench_planned *p, struct subject *subject,
                                struct grid_cases *out, tare_error *err);

/* --find-rate: reads --slo; what it says of each request goes to `each`. 0, or the exit code after the user was
 * told. */
int bench_find_limits(struct cli *cli, const struct bench_args *a, struct rate_limits *out, struct slo *each);
/* The search: its windows become cases of the run, its result run->rate_search. */
tare_status bench_find_rate(struct cli *cli, const struct bench_planned *p, struct subject *subject,
                            struct run *run);

/* ---- what only some have ---- */

/* Compare each case's outputs with --expect, or with the first case's; fills accuracy. The exit code: a finding when
 * more than --max-drop was lost; what could not be compared was told, and is said in its case. */
struct bench_outputs {
    const struct bench_case *cases;
    const struct tensor_set *sets; /* one per case */
};
int bench_check(struct cli *cli, const struct bench_planned *p, const struct bench_outputs *of,
                struct run *run);
int bench_expected_read(struct cli *cli, const struct bench_args *a, struct bench_expected *out);
void bench_expected_release(struct bench_expected *e);

/* --repeat: run the same command line in that many fresh processes, one after another, and make their documents one.
 * *worst is the worst of their exit codes. */
tare_status bench_repeat(struct cli *cli, const struct bench_args *a, struct run *out, int *worst);
/* argv of a child: these options, and the same words. Owned; the words are not. NULL: no memory. */
char **bench_child_words(const struct bench_args *a, char *const *options);
/* Of "py:FILE.py:NAME" what follows the first colon. 0, or the exit code after the user was told. */
int bench_python_target(struct cli *cli, const char *word, const char **out);
/* A program, found on PATH, and what became of it. `log`: where it writes; -1: where tare does. */
struct bench_program {
    const char *exe;
    char *const *words;
    int log;
};
tare_status bench_run_program(const struct bench_program *p, int *code, tare_error *err);
/* `tare bench` with these words in a process of its own, its document in *out, unjudged. 0, or the exit code after the
 * user was told. */
int bench_child(struct cli *cli, const struct opt_list *words, struct run *out);
/* This process is one of the launches: it ends when the tare that started it is gone. */
void bench_launch_bound(void);

/* --anchor: each case in turn with a frozen build of the same thing; the ratios become part of the run. What fails is
 * said in the document: the measurement was made already. `model`: the file that was benched; NULL: a command. */
int bench_anchor_check(struct cli *cli, const struct bench_args *a);
tare_status bench_anchor(struct cli *cli, const struct bench_planned *p, const char *model, struct run *run);
void bench_anchor_show(struct cli *cli, const struct run *run);

/* Layers of each case by a pass of its own with the runtime's profiler, their cost, the roof, the graph with and
 * without optimisation. What fails is said in the document: the measurement was made already. */
tare_status bench_layers(struct cli *cli, const struct bench_args *a, const struct grid_cases *cases,
                         struct run *run);
bool bench_layers_takes(const char *word);
tare_status bench_layers_parse(void *args, const char *text, tare_error *err);

/* --memory: the allocations of a run of each case, by a process of its own that has the agent in it. What fails is said
 * in the document. */
int bench_memory_check(struct cli *cli, struct bench_args *a);
tare_status bench_memory(struct cli *cli, const struct bench_planned *p, struct run *run);
int bench_memory_pass(struct cli *cli, const struct bench_planned *p); /* this is that process */

#endif

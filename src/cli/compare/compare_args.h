/* SPDX-License-Identifier: MIT
 * compare_args.h - what a user asked `tare compare` for, and the ways to answer. One file each: cmd_compare.c (the
 * command line, which way; verdict, answer, exit code for every way), compare_ab.c (both sides measured in turn),
 * compare_side.c (from texts to sides), compare_rev.c (git revisions), compare_runs.c (saved runs), compare_traces.c
 * (what GPUs did, who held memory, where the time of sampled threads went). */
#ifndef CLI_COMPARE_ARGS_H
#define CLI_COMPARE_ARGS_H

#include "analyze/compare/paired.h"
#include "analyze/judge/judge.h"
#include "bench/ab.h"
#include "cli/asking.h"
#include "cli/case_grid.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "report/compare/comparison_report.h"
#include "report/run/run_report.h"
#include "run/comparison.h"

struct compare_args {
    /* which way */
    bool ab, gpu, memory, stacks;
    int by;                        /* of memory: enum memory_by */
    int time;                      /* of stacks: enum stacks_time */
    const char *revisions, *build; /* "main..HEAD" */
    char **args;                   /* what is compared, n of them */
    int n;
    bool dashes; /* they came after -- */
    /* the sides of --ab */
    struct model_args common;
    const char *options[PAIR_SIDES]; /* --a, --b */
    struct command_args call;
    struct asking_args asking; /* of services */
    uint64_t concurrency;
    /* the sides of saved runs: files, folders, names in the history */
    struct opt_list base, new_;
    bool positional;             /* base and new_ point into args */
    bool force, close_runs;      /* close_runs: those less than 30 s apart count each */
    struct history_args history; /* and the folder of documents */
    struct opt_list fail_on;
    /* measuring and judging */
    struct duration budget;
    uint64_t seed, max_pairs;
    double min_effect; /* share; negative: the way's own default */
    bool strict;
    /* the answer */
    bool json, no_save, samples;
    int format;         /* of comparison_formats */
    const char *output; /* file; NULL: stdout */
    struct {
        const char *format, *path;
    } also[RUN_FORMATS]; /* files beside the answer; format NULL: none */
    bool quiet;          /* one of them is the answer */
    const char *html;    /* the page; NULL: none */
};

/* ---- sides ---- */

struct compare_side {
    const char *name; /* as the user wrote it */
    const char *url;  /* of a service */
    struct asking asking;
    char **command;        /* NULL: a model, or a service */
    const char *line;      /* of the command, for --shell */
    const char *path;      /* of the model */
    const char *dir;       /* where the command runs; NULL: here */
    struct model_args own; /* of --a or --b; what it leaves out is the common one's */
    struct grid grid;
    struct grid_cases cases;
    const char *runtime, *runtime_version; /* of a model; NULL: none was found */
    char **env;                            /* of the command; its last entry is the padding */
    char *pad;
    struct subject *subject; /* the command, the service */
};

struct compare_sides {
    const struct compare_args *args;
    struct arena arena;
    struct compare_side side[PAIR_SIDES];
};

/* Read A, B, --a, --b, --ort into two sides with as many cases. 0, or the exit code after the user was told. */
int compare_sides_read(struct cli *cli, const struct compare_args *a, struct compare_sides *out);
/* Two models whose cases are settled already; what those point to is borrowed. */
int compare_sides_of(struct cli *cli, const struct compare_args *a, const struct grid_cases *cases,
                     struct compare_sides *out);
void compare_sides_release(struct compare_sides *s);
bool compare_is_model(const char *arg); /* else it is a command */

/* A lane for case i; close it with ab_lane_close(). */
tare_status compare_side_lane(struct compare_sides *sides, int which, size_t i, struct ab_lane **out,
                              tare_error *err);
void compare_side_describe(const struct compare_side *s, struct comparison *c, struct comparison_side *to);

/* ---- ways ---- */

int compare_ab(struct cli *cli, const struct compare_args *a);
/* Two lanes measured in turn until their ratio is known well enough: the engine of src/bench asked by the rule of
 * src/analyze, as every command that compares does it. */
struct ab_trial {
    struct ab_lane *lane[PAIR_SIDES];
    const char *name;
    uint64_t budget_ns, seed, max_pairs; /* max_pairs 0: no limit */
    const struct paired_rule *rule;
    struct bench_progress progress;
    uint64_t later_ns; /* planned behind it: other cases */
    uint64_t since_ns; /* clock_raw_ns() when the first of them began; 0: this is the first */
};
/* As ab_run(): *set is to be released with ab_pairs_release(), whatever the result. */
tare_status ab_trial_run(const struct ab_trial *t, struct pair_set *set, struct ab_outcome *out,
                         tare_error *err);
const char *ab_trial_stop_word(enum ab_stop s); /* "precise", "budget", .. */
uint64_t ab_trial_seed(void);                   /* a new one */

/* Measure all cases of the sides in turn and judge them; *c is initialised. */
tare_status compare_ab_measure(struct cli *cli, const struct compare_args *a, struct compare_sides *sides,
                               struct comparison *c);

/* Saved runs of two sides; or a comparison that was kept, shown again. */
int compare_runs(struct cli *cli, const struct compare_args *a);
int compare_shown_again(struct cli *cli, const struct compare_args *a);
/* The same with a run that was just made as the new side, `a->base` as the other. */
int compare_with_run(struct cli *cli, const struct compare_args *a, const struct run *run);
/* Can these be read? Names in the history are looked up only for a subject; NULL: it is not known yet. 0, or the exit
 * code. */
int compare_runs_check(struct cli *cli, const struct opt_list *names, const struct history_args *history,
                       const char *subject);

/* What --fail-on says, of the measures that may be named (NULL: of runs). */
struct compare_limits {
    struct compare_limit *items;
    size_t n, cap;
};
tare_status compare_limits_read(const struct opt_list *texts, const struct measure *among,
                                struct compare_limits *out, tare_error *err);

/* The command line that judges the same sides again, into the document. */
void compare_tell_again(const struct compare_args *a, struct comparison *c);

/* Traces of two sides: what GPUs did, who held memory, which functions gained or lost share. */
int compare_traces(struct cli *cli, const struct compare_args *a);

/* Check both revisions out into folders under `dir`, build them; the folders' names go to the sides. */
struct compare_trees {
    char root[4096]; /* "": nothing to remove */
    char path[PAIR_SIDES][4096];
    char revision[PAIR_SIDES][256];
};
tare_status compare_trees_make(struct cli *cli, const struct compare_args *a, struct compare_trees *t);
void compare_trees_remove(struct compare_trees *t);

/* ---- the answer, whatever the way: keeps the document, prints it, returns the exit code ---- */

/* The runs that the page shows beside the comparison; NULL: it was measured now, and its document is to be kept. */
struct compare_saved_sides {
    struct {
        const struct run *const *runs;
        size_t n; /* 0: none */
    } side[PAIR_SIDES];
};
int compare_answer(struct cli *cli, const struct compare_args *a, const struct comparison *c,
                   const struct compare_saved_sides *saved);

#endif

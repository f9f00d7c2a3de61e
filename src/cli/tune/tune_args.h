/* SPDX-License-Identifier: MIT
 * tune_args.h - `tare tune`, step by step:
 *     the command line         -> struct tune_args    tune_options.c
 *     what there is to choose  -> struct tune_plan    tune_plan.c, tune_precision.c
 *     what is used today, and the bound of any gain   tune_bound.c
 *     searched, confirmed      -> struct tuning       tune_search.c, tune_confirm.c
 *     judged, answered                                tune_answer.c
 * Whatever runs a model does so in a process of its own, so that what dies there is a row with its reason. A data
 * loader is looked at, searched and confirmed by a Python process, which tells what it found: tune_loader.c. */
#ifndef CLI_TUNE_ARGS_H
#define CLI_TUNE_ARGS_H

#include "analyze/judge/accuracy.h"
#include "analyze/judge/judge.h"
#include "analyze/tune/confirm.h"
#include "analyze/tune/search.h"
#include "bench/ab_block.h"
#include "cli/case_grid.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "report/run/run_report.h"

/* ---- the command line ---- */

enum { TUNE_TARGETS_MAX = 3 };

struct tune_args {
    unsigned kind;            /* KIND_MODEL: model is a file; KIND_PYTHON: .. */
    const char *model, *name; /* .. it is FILE.py:NAME or MODULE:NAME */
    const char *step;         /* likewise, of a loader; NULL: none */
    struct buf line;          /* the command line, for the document */
    struct model_args setup;  /* lists: what to try, what is used today first; one value: it stays */
    const char *latency, *memory, *accuracy;
    const char *only; /* settings to try, separated by commas; NULL: all */
    struct target targets[TUNE_TARGETS_MAX];
    size_t n_targets;
    const struct target *gate; /* that of --accuracy; NULL: none */
    enum accuracy_metric metric;
    int objective;
    double min_gain;
    struct duration budget;
    uint64_t seed, max_batch;
    bool explain, no_resume, json, no_save;
    const char *also[RUN_FORMATS], *html;
    struct history_args history;
};
/* 0: go on; anything else: return it. Always release. */
int tune_args_read(struct cli *cli, struct tune_args *a, int argc, char **argv);
void tune_args_release(struct tune_args *a);

/* ---- what there is to choose ---- */

enum tune_setting {
    TUNE_BATCH,
    TUNE_THREADS,
    TUNE_PRECISION,
    TUNE_PROVIDER,
    TUNE_IO,
    TUNE_EXECUTION,
    TUNE_LEVEL,
    TUNE_ARENA,
    TUNE_PATTERN,
    TUNE_SETTINGS
};

extern const char *const tune_setting_names[TUNE_SETTINGS];
extern const char *const tune_loader_settings[];                  /* of a data loader; ends with NULL */
bool tune_varies(const struct tune_args *a, enum tune_setting s); /* by --only */

struct tune_choice {
    int64_t number;
    const char *word;                    /* NULL: the number */
    const char *file;                    /* of a precision: its model */
    const struct run_accuracy *accuracy; /* of a precision that is not today's */
};
struct tune_choices {
    struct tune_choice at[TUNE_VALUES_MAX];
    size_t n;
    uint8_t base; /* what is used today */
};

/* Options of a command line that is put together. */
tare_status tune_add_word(struct opt_list *words, const char *option, const char *value, tare_error *err);
tare_status tune_add_setup(struct opt_list *words, const struct model_args *m, tare_error *err);

struct tune_plan {
    const struct tune_args *args;
    struct arena arena;
    struct grid grid; /* what was asked for */
    struct tune_choices of[TUNE_SETTINGS];
    struct tune_knob knobs[TUNE_SETTINGS];
    struct tune_space space;
    struct case_params fixed; /* the rest of the work: length, other dimensions */
    const char *runtime;      /* the library that was found */
    uint64_t typical_ns;      /* of a run as it is today */
    /* a batch whose run would surely take long is not tried before smaller ones have shown that it does not */
    double run_most_ns;             /* 0: any */
    double run_ns[TUNE_VALUES_MAX]; /* by number of batch, the fastest that was seen; 0: none was */
    VEC(const char *) left;         /* what is not touched, and why */
};

/* `today`: the document of what is used today. */
tare_status tune_plan_make(struct tune_plan *p, const struct tune_args *a, const struct run *today,
                           tare_error *err);
/* After more values were added. */
void tune_plan_close(struct tune_plan *p);
void tune_plan_release(struct tune_plan *p);
tare_status tune_plan_leave(struct tune_plan *p, tare_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A run of it took so long; NAN: nothing was measured. */
void tune_plan_saw(struct tune_plan *p, const struct tune_point *at, double run_ns);
/* Batches that were never allowed. */
tare_status tune_plan_leave_slow(struct tune_plan *p, tare_error *err);

const struct tune_choice *tune_chosen(const struct tune_plan *p, const struct tune_point *at,
                                      enum tune_setting s);
const char *tune_name(struct tune_plan *p, const struct tune_point *at);
const char *tune_model(const struct tune_plan *p, const struct tune_point *at);
/* A lane that measures it; close it with ab_lane_close(). */
tare_status tune_lane(struct tune_plan *p, const struct tune_point *at, struct ab_lane **out,
                      tare_error *err);
/* Its options for `tare bench` and `tare compare`. */
void tune_options(const struct tune_plan *p, const struct tune_point *at, struct buf *out);
void tune_params(const struct tune_plan *p, const struct tune_point *at, const struct run_map *today,
                 struct run *run, struct run_map *out);
/* All that decides what a search measures, as one text. */
const char *tune_key(struct tune_plan *p, const struct run *today);

/* Make the model in lower precisions and keep those whose outputs are good enough; of the others the reason is told. 0,
 * or the exit code after the user was told. */
int tune_precision(struct cli *cli, struct tune_plan *p);

/* ---- the bound ---- */

struct tune_bound {
    bool known;
    double gain;                     /* at most, at this batch */
    double any_batch;                /* at most, per sample, at any; NAN: unknown */
    double compute, memory, outside; /* shares of the time of a run that each of them holds up */
    double run_ns, roof_ns;
    char why_not[160];
    const char *loader; /* of a data loader, in place of the shares: what holds it back; NULL: a model */
    struct run_map stages_ms; /* and what a sample takes in each stage */
};
/* What is used today as a document of `tare bench --layers`. 0, or the exit code after the user was told. */
int tune_look(struct cli *cli, const struct tune_args *a, struct run *out);
void tune_bound_find(struct tune_bound *b, const struct run *today);
void tune_bound_text(struct buf *out, const struct tune_bound *b);
void tune_bound_record(const struct tune_bound *b, struct run *run);

/* ---- searching and confirming ---- */

struct tune_trial { /* one configuration */
    struct tune_point at;
    const char *name;
    struct ab_member member;
    const char *over;      /* the limit that it does not keep; NULL: it keeps all */
    struct run_map params; /* of a loader, as are .. */
    double units;          /* .. samples of a run; 0: the plan knows both */
};

struct tuning {
    struct cli *cli;
    struct tune_plan *plan;
    struct run *run;               /* the document, begun with what is used today */
    const struct run_map *params;  /* of what is used today */
    const char *key;               /* of the search: tune_key() */
    VEC(struct tune_trial) trials; /* the first is what is used today; never moves */
    struct run_map blocks;         /* told to the search: for the next one to resume */
    struct progress bar;
    uint64_t began_ns, slice_ns, least_runs;
    uint64_t looked_ns, proof_ns; /* when looking ended and the proof began; 0: it did not */
    size_t measurements, recalled;
    bool done; /* nothing is left to ask */
    /* found: numbers of trials */
    size_t best;
    bool nothing_fits; /* no trial keeps all limits */
    /* confirmed */
    bool has_proof;
    size_t retaken; /* pairs during which the load of others shifted */
    struct confirm_result proof;
    char proof_failure[512];
    const char *refusal; /* why it is left, whatever the pairs say; NULL: they decide */
    const char *apply;   /* what to write in the program; NULL: the options say it */
    const char *to_try;  /* settings that vary, of a loader */
};
/* Of warming up a worker: ns, where a run takes so long. */
double tune_warm_ns(double run_ns);
bool tune_is_slow(const struct tuning *t); /* runs take so long that each counts */
double tune_units(const struct tuning *t, const struct tune_trial *trial);
bool tune_over_limit(struct tuning *t, struct tune_trial *trial, tare_error *err);
tare_status tune_search(struct tuning *t);
/* What the least pairs of a candidate would take: ns. */
double tune_proof_ns(const struct tuning *t, size_t candidate);
/* The best against what is used today, in pairs. */
tare_status tune_confirm(struct tuning *t);
/* The document is kept: what was left for a search that is killed goes. */
void tune_part_remove(const struct tuning *t);
/* More runs of both, so that limits can be judged. */
tare_status tune_measure_again(struct tuning *t);
void tuning_release(struct tuning *t);

/* ---- a data loader ---- */

/* All of it, the answer included. 0, or the exit code. */
int tune_loader(struct cli *cli, const struct tune_args *a, struct run *run);

/* ---- the answer ---- */

/* `run` becomes the document of a search. */
tare_status tune_begin(struct tuning *t, const struct tune_bound *bound);
/* What was measured of each configuration, as cases of the document. */
tare_status tune_record_trials(struct tuning *t);
/* Judge, keep and show what was found: the exit code. */
int tune_conclude(struct tuning *t, const struct tune_bound *bound);
/* The bound alone: with --explain, and where it leaves nothing to gain. */
int tune_answer_bound(struct tuning *t, const struct tune_bound *bound);

#endif

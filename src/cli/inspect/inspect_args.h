/* SPDX-License-Identifier: MIT
 * inspect_args.h - what a user asked `tare inspect` for, and the two things it does: cmd_inspect.c (the command line,
 * what models cost), inspect_diverge.c (where two of them differ). */
#ifndef CLI_INSPECT_ARGS_H
#define CLI_INSPECT_ARGS_H

#include "cli/case_grid.h"
#include "cli/cli.h"
#include "model/infer/poly.h"
#include "report/run/layer_columns.h"
#include "subject/ort_find.h"
#include "subject/subject.h"

struct inspect_args {
    char **models;
    size_t n;
    /* dimensions */
    struct grid grid; /* of --dim */
    int64_t batch, seq;
    VEC(struct poly_binding) bindings; /* all of them, by name */
    VEC(struct dim_value) dims;        /* those of --dim */
    /* what is shown */
    bool symbolic, all;
    uint64_t top;
    int sort;
    const char *layers; /* patterns, separated by commas */
    char *pattern_text;
    VEC(const char *) patterns;
    /* with a runtime */
    bool optimized, run, diverge;
    struct opt_list runtimes;
    const char *provider, *inputs;
    int64_t threads, optimization;
    uint64_t seed, at_once;
    double tolerance;
    struct ort_places places[2]; /* for the first model, and for the second of --diverge */
    /* answered where */
    const char *csv, *output, *html;
    bool json;
};
#define INSPECT_ARGS_INIT \
    {.grid = GRID_INIT, .top = 10, .optimization = -1, .seed = 1, .at_once = 8, .tolerance = 1e-3}

/* The configuration that sessions get. */
struct case_params inspect_case(const struct inspect_args *a);

/* inspect_diverge.c: the first layer at which the two models differ. The exit code. */
int inspect_diverge(struct cli *cli, const struct inspect_args *a);

#endif

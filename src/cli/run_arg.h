/* SPDX-License-Identifier: MIT
 * run_arg.h - what the commands on run documents share: loading the files a user named, all or none. */
#ifndef CLI_RUN_ARG_H
#define CLI_RUN_ARG_H

#include "cli/cli.h"
#include "run/run.h"

struct run_args {
    struct run *runs;
    const struct run **list; /* the same, as a list for reports */
    size_t n;
};
#define RUN_ARGS_INIT {NULL, NULL, 0}

/* 0, or the exit code after the user was told which file is wrong and why. */
int run_args_load(struct cli *cli, struct run_args *out, char **paths, size_t n);
void run_args_release(struct run_args *a);

#endif

/* SPDX-License-Identifier: MIT
 * input.h - the files that a user named: traces, run documents. What a file is, is seen from its content, never from
 * its name; a file that is something else is named for what it is. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include "cli/cli.h"
#include "cli/output.h"
#include "run/run.h"
#include "trace/reader.h"

/* 0, or the exit code after the user was told. */
int input_trace(struct cli *cli, const char *path, struct trace **out);

/* Is this a run document (tare.run/..), as far as its beginning tells? */
bool input_is_run(const char *path);
bool input_is_comparison(const char *path); /* made by tare compare */

/* Or the result of a Python profiler that names its run document, or the name of a run that is kept? */
bool input_holds_run(const char *path);
/* The run in a document, or in the one that such a result names. */
tare_status input_run_load(struct run *out, const char *path, tare_error *err);

/* Run documents, all or none. */
struct input_runs {
    struct run *runs;
    const struct run **list; /* the same, as a list for reports */
    size_t n;
};
/* Files, or names of runs in the history or on a server (kept.h). 0, or the exit code after the user was told which is
 * wrong and why. */
int input_runs_load(struct cli *cli, struct input_runs *out, const struct history_args *history, char **names,
                    size_t n);
void input_runs_release(struct input_runs *r);

#endif

/* SPDX-License-Identifier: MIT
 * output.h - where what a command says goes: its answer on stdout, or a file that appears whole or not at all. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "cli/cli.h"
#include "report/answer.h"
#include "report/run/run_report.h"

struct output {
    struct stream stream; /* write here */
    struct cli *cli;
    struct sink_file file;
    bool is_file;
    bool exact; /* pages, documents as they were kept; else it is text, and cleaned on its way */
};

bool output_is_answer(const char *path); /* "-" */
/* path NULL or "-": the answer. Whatever output_close() returns, nothing is left to release. `o` stays where
 * it is in between. */
tare_status output_open(struct cli *cli, struct output *o, const char *path);
tare_status output_close(struct cli *cli, struct output *o);
tare_status output_runs(struct cli *cli, const char *path, const struct run_report *r, run_format_fn *format);

/* Writes to the command's answer; fails once its reader is gone or the disk is full. */
struct sink cli_sink(struct cli *cli); /* text: cleaned by term_show() */
struct sink cli_sink_exact(
    struct cli *cli); /* models, pages, documents as they were kept: cleaned for terminals alone */
struct report_style cli_style(const struct cli *cli); /* what the answer's terminal may be told */
/* The exit code for an answer that ended with `status`. A lost answer is left to cli_finish(). */
int cli_stream_result(struct cli *cli, tare_status status);

/* The answer described once, see report/answer.h, and its end as an exit code. */
void cli_answer_begin(struct cli *cli, struct answer *a, bool as_json);
int cli_answer_end(struct cli *cli, struct answer *a);

#endif

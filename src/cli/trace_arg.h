/* SPDX-License-Identifier: MIT
 * trace_arg.h - what the commands on traces share: opening the file a user named, and writing long answers
 * piece by piece. */
#ifndef CLI_TRACE_ARG_H
#define CLI_TRACE_ARG_H

#include "cli/cli.h"
#include "report/sink.h"
#include "trace/reader.h"

/* Open a trace. What it is, is seen from its content, never from its name; a file that is something else is
 * named for what it is. 0, or the exit code after the user was told. */
int trace_arg_open(struct cli *cli, const char *path, struct trace **out);

/* Is this a run document (tare.run/..), as far as its beginning tells? */
bool trace_arg_is_run(const char *path);

/* Writes to the command's answer; fails once its reader is gone or the disk is full. */
struct sink cli_sink(struct cli *cli);

/* The exit code for a stream that ended with `status`. A lost answer is left to cli_finish(). */
int cli_stream_result(struct cli *cli, tare_status status);

#endif

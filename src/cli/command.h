/* SPDX-License-Identifier: MIT
 * command.h - the table of commands. To add one:
 *   1. a row in command.c, and its prototype below;
 *   2. src/cli/cmd_<name>.c, which calls cli_options() before anything else;
 *   3. docs/cli/tare-<name>.md, whose first fenced block is the text of -h;
 *   4. tests/cli/<name>/ with at least one golden test.
 * tests/unit/test_command.c fails while one of the four is missing. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

struct cli;
struct opt_choice;

typedef int command_fn(struct cli *cli, int argc, char **argv); /* argv[0] is the command's name */

enum command_flags {
    CMD_PAGER =
        1, /* long answers: through a pager when stdout is a terminal; never of what measures, which may be
                       * one of several commands in a row */
    CMD_PLUMBING = 2, /* called by scripts of ours: not in the help, no page */
    /* under which heading the help shows it; none of these: it measures */
    CMD_LOOK = 4,
    CMD_SHARE = 8,
    CMD_MORE = 16,
};

struct command {
    const char *name;
    command_fn *run;
    unsigned flags;
    const char *summary; /* one line, lower case, no full stop */
};

/* All rows in the order of the help; the last one has name NULL. */
extern const struct command command_table[];
const struct command *command_find(const char *name); /* NULL: none */
const struct opt_choice *command_words(void);         /* the names that the help shows, for completion */

/* Words of the Python package, `tare functions x.py`: cmd_python() runs `python -m tare functions x.py`. */
struct python_word {
    const char *name, *help;
};
extern const struct python_word python_words[]; /* the last one has name NULL */
bool is_python_word(const char *name);
command_fn cmd_python;

command_fn cmd_ab_spin, cmd_ab_worker, cmd_compare, cmd_trace_view;
command_fn cmd_bench, cmd_complete, cmd_completion, cmd_doctor, cmd_export, cmd_help, cmd_plan, cmd_push,
    cmd_report;
command_fn cmd_history, cmd_trend, cmd_tune;
command_fn cmd_attach, cmd_audit, cmd_import, cmd_init, cmd_inspect, cmd_run, cmd_serve, cmd_synth, cmd_token,
    cmd_top, cmd_version, cmd_webhook;

#endif

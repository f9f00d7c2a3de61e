/* SPDX-License-Identifier: MIT
 * output.h - where what a command says goes: its answer on stdout, a whole file or none, the history. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "cli/cli.h"
#include "report/answer.h"
#include "report/run/run_report.h"
#include "store/store.h"

struct output {
    struct stream stream; /* write here */
    struct cli *cli;
    struct file_out file;
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
struct sink cli_sink_exact(
    struct cli *cli); /* models, pages, documents as they were kept: cleaned for terminals alone */
struct report_style cli_style(const struct cli *cli,
                              const struct term *t); /* what this terminal may be told */
/* The exit code for an answer that ended with `status`. A lost answer is left to cli_finish(). */
int cli_stream_result(struct cli *cli, tare_status status);

/* The answer described once, see report/answer.h, and its end as an exit code. */
void cli_answer_begin(struct cli *cli, struct answer *a, bool as_json);
int cli_answer_end(struct cli *cli, struct answer *a);

/* ---- the history: which file it is, opening it, keeping a fresh run without ever losing its document ---- */

struct history_args {
    const char
        *file; /* NULL: history.db in the output folder; or the URL of a server, of commands that ask */
    const char *output_dir;
    const char *server;   /* where --push sends to; NULL: not said */
    const char *trace;    /* of the run that was made, sent after it; NULL: none */
    bool none;            /* keep nothing */
    bool push, push_must; /* send it to a server, too; and fail where that fails */
    bool quiet;           /* only what goes wrong is told */
};
/* clang-format off */
#define HISTORY_DIR_DEFAULT "tare-results"
#define HISTORY_ARGS_INIT {.output_dir = HISTORY_DIR_DEFAULT}
/* Where it is: rows of every command that writes or asks the history. */
#define OPT_HISTORY(a) \
    OPT_PATH(0, "history", &(a)->file, "<file>", "the history (default: history.db in --output-dir)")
#define OPT_HISTORY_DIR(a) \
    OPT_STRING(0, "output-dir", &(a)->output_dir, "<dir>", "where runs are kept", .flags = OPT_DIR)
/* Of commands that only ask. */
#define OPT_SERVER(a) \
    OPT_STRING(0, "server", &(a)->file, "<url>", "ask this server in place of a history (with TARE_TOKEN)", \
               .flags = OPT_NO_ENV, .not_with = "history")
/* Of commands that show runs: where @name and ids are. */
#define OPT_ASKED(a) OPT_HISTORY(a), OPT_SERVER(a), OPT_HISTORY_DIR(a)
/* Of commands that make a run. */
#define OPT_PUSH(a) \
    OPT_FLAG(0, "push", &(a)->push, "send the run to a server, too; kept and sent later where it is away", \
             .not_with = "no-save"), \
    OPT_FLAG(0, "push-must", &(a)->push_must, "the same, and fail where it could not be sent", .not_with = "no-save"), \
    OPT_STRING(0, "server", &(a)->server, "<url>", "where --push sends to (its token: TARE_TOKEN)", \
               .needs = "push push-must")
/* What it is called there: every command that measures something. */
#define OPT_NAME(to) \
    OPT_CALLBACK(0, "name", output_parse_name, to, "<text>", \
                 "what reports, history and baselines call it (default: the command, the model, the function)")
/* clang-format on */
tare_status output_parse_name(void *name, const char *text, tare_error *err);

/* Of a command that measures a run: where its answer goes. Each points to what the row sets. */
struct output_rows {
    const char **name, **also, **html; /* also: RUN_FORMATS of them */
    bool *json, *no_save;
    struct history_args *history;
};
struct opt *output_add_rows(struct opt *to, const struct output_rows *r);

/* The document into its folder, and into the history. `quiet`: where it is kept is not told. */
tare_status output_keep(struct cli *cli, const struct history_args *a, const struct run *run, bool quiet);

/* Can runs be kept there, and in the history? The folder is made, so that it is known before minutes of measuring.
 * 0, or the exit code after the user was told why not. */
int output_dir_check(struct cli *cli, const struct history_args *a);

tare_status history_path(const struct history_args *a, struct buf *out, tare_error *err);

/* Open, add, close; to a server with --push. A history or a server that fails is a warning: the measurement was made
 * and its document is kept. Not TARE_OK: --push-must. */
tare_status history_keep(struct cli *cli, const struct history_args *a, const struct run *run);

const char *history_token(void); /* TARE_TOKEN; NULL: not set. It is no option: those are seen by all */
tare_status history_store(const struct history_args *a, bool create, struct store **out, tare_error *err);

/* For a command that asks. 0, or the exit code after the user was told why not. */
int history_open(struct cli *cli, const struct history_args *a, bool create, struct store **out);

/* "2026-11-01", "2026-11-01T12:00", or an age: "30d", "12h". Milliseconds of unix time. For OPT_CALLBACK. */
tare_status history_parse_since(void *ms, const char *text, tare_error *err);

#endif

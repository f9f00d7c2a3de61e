/* SPDX-License-Identifier: MIT
 * history_arg.h - what the commands share that keep runs in the history or ask it: which file it is, opening
 * it, and keeping a fresh run without ever losing its document. */
#ifndef CLI_HISTORY_ARG_H
#define CLI_HISTORY_ARG_H

#include "cli/cli.h"
#include "store/store.h"

struct history_args {
    const char *file; /* NULL: history.db in the output folder */
    const char *output_dir;
    bool none; /* keep nothing */
};
/* clang-format off */
#define HISTORY_ARGS_INIT {.output_dir = "tare-results"}
/* Where it is: rows of every command that writes or asks the history. */
#define OPT_HISTORY(a) \
    OPT_PATH(0, "history", &(a)->file, "<file>", "the history (default: history.db in --output-dir)")
#define OPT_HISTORY_DIR(a) \
    OPT_WITH(OPT_DIR, OPT_ROW_(STRING, 0, "output-dir", string, &(a)->output_dir, "where runs are kept"), \
             .arg = "<dir>")
/* clang-format on */

tare_status history_path(const struct history_args *a, struct buf *out, tare_error *err);

/* Open, add, close. A history that fails is a warning: the measurement was made and its document is kept. */
void history_keep(struct cli *cli, const struct history_args *a, const struct run *run);

/* For a command that asks. 0, or the exit code after the user was told why not. */
int history_open(struct cli *cli, const struct history_args *a, bool create, struct store **out);

/* "2026-11-01", "2026-11-01T12:00", or an age: "30d", "12h". Milliseconds of unix time. For OPT_CALLBACK. */
tare_status history_parse_since(void *ms, const char *text, tare_error *err);

#endif

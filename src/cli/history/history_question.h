/* SPDX-License-Identifier: MIT
 * history_question.h - what a user asked `tare history` for, and its parts: cmd_history.c (the command line, asking,
 * changes), history_list.c (the list), history_move.c (import and export). Private to these. */
#ifndef CLI_HISTORY_QUESTION_H
#define CLI_HISTORY_QUESTION_H

#include "cli/output.h"

struct history_question {
    struct history_args where;
    struct store_filter filter;
    uint64_t keep;
    int64_t older_ms;
    const char *jsonl, *commit, *branch;
    bool json, dry_run, remove;
    int argc; /* what follows the word */
    char **argv;
};

typedef int history_fn(struct cli *cli, struct store *s, const struct history_question *a);
history_fn history_list, history_import, history_export;

#endif

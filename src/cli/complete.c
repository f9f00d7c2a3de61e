/* SPDX-License-Identifier: MIT
 * complete.c - what may follow on a command line, read off the option rows. Applies nothing. */
#include <stdio.h>
#include <string.h>

#include "cli/opt.h"

static void complete_offer(struct buf *out, const char *typed, const char *word, const char *help)
{
    if (strncmp(word, typed, strlen(typed)) != 0) return;
    buf_printf(out, "%s\t%s\n", word, help ? help : "");
}

static void offer_values(struct buf *out, const struct opt *row, const char *typed)
{
    if (row->type == OPT_TYPE_ENUM) {
        for (const struct opt_choice *c = row->choices; c->name; c++)
            complete_offer(out, typed, c->name, c->help);
    } else if (row->flags & OPT_FILE) {
        buf_add_str(out, ":files\n");
    } else if (row->flags & OPT_DIR) {
        buf_add_str(out, ":dirs\n");
    }
}

static void offer_options(struct buf *out, const struct opt_request *req, const char *typed)
{
    for (size_t t = 0; t < OPT_TABLES; t++) {
        for (const struct opt *row = req->tables[t]; row && row->type != OPT_TYPE_END; row++) {
            char word[80];
            if (row->type == OPT_TYPE_GROUP || (row->flags & OPT_HIDDEN)) continue;
            bool on = row->type == OPT_TYPE_FLAG && row->to.flag && *row->to.flag;
            snprintf(word, sizeof word, "--%s%s", on ? "no-" : "", row->name);
            complete_offer(out, typed, word, row->help);
        }
    }
}

/* The option whose value is the next word, if `word` is one; NULL otherwise. */
static const struct opt *awaits_value(const struct opt_request *req, const char *word)
{
    if (word[0] != '-' || !word[1]) return NULL;
    if (word[1] == '-') {
        const struct opt *row = strchr(word, '=') ? NULL : opt_find(req, word + 2, strlen(word + 2));
        return row && row->type != OPT_TYPE_FLAG && !row->takes ? row : NULL;
    }
    for (const char *c = word + 1; *c; c++) {
        const struct opt *row = opt_find_letter(req, *c);
        if (!row) return NULL;
        if (row->type != OPT_TYPE_FLAG) return c[1] ? NULL : row;
    }
    return NULL;
}

static void offer_arguments(struct buf *out, const struct opt_usage *usage, uint32_t before,
                            const char *typed)
{
    if (before >= usage->max_args) return;
    if (usage->args == OPT_ARGS_FILES) buf_add_str(out, ":files\n");
    if (usage->args == OPT_ARGS_DIRS) buf_add_str(out, ":dirs\n");
    if (usage->args != OPT_ARGS_WORDS) return;
    for (const struct opt_choice *c = usage->words; c->name; c++)
        complete_offer(out, typed, c->name, c->help);
}

void opt_complete(struct buf *out, const struct opt_request *req, int n, char **words)
{
    const char *typed = n > 0 ? words[n - 1] : "";
    const struct opt *pending = NULL;
    bool only_args = false;
    uint32_t args = 0;
    for (int i = 0; i + 1 < n; i++) {
        if (pending) {
            pending = NULL;
        } else if (!only_args && strcmp(words[i], "--") == 0) {
            only_args = true;
        } else if (only_args || words[i][0] != '-' || !words[i][1]) {
            args++;
            only_args = only_args || req->usage->stop_at_arg;
        } else {
            pending = awaits_value(req, words[i]);
        }
    }
    const char *eq = strncmp(typed, "--", 2) == 0 && !only_args ? strchr(typed, '=') : NULL;
    const struct opt *row = eq ? opt_find(req, typed + 2, (size_t)(eq - typed - 2)) : NULL;
    if (pending)
        offer_values(out, pending, typed);
    else if (row)
        offer_values(out, row, eq + 1);
    else if (typed[0] == '-' && !only_args)
        offer_options(out, req, typed);
    else
        offer_arguments(out, req->usage, args, typed);
}

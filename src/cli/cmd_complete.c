/* SPDX-License-Identifier: MIT
 * cmd_complete.c - `tare __complete SHELL WORD...`: what may stand in place of the last word. Runs no
 * command: the command's own cli_options() answers from its rows. Never prints an error: nobody reads it. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "cli/opt.h"

/* ---- what may follow, read off the option rows. Applies nothing ---- */

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
    for (const struct opt *row = req->rows; row->type != OPT_TYPE_END; row++) {
        char word[80];
        if (row->type == OPT_TYPE_GROUP || (row->flags & OPT_HIDDEN)) continue;
        bool on = row->type == OPT_TYPE_FLAG && row->to.flag && *row->to.flag;
        snprintf(word, sizeof word, "--%s%s", on ? "no-" : "", row->name);
        complete_offer(out, typed, word, row->help);
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
    for (const struct opt_choice *c = before ? NULL : usage->words; c && c->name; c++)
        complete_offer(out, typed, c->name, c->help);
    if (usage->words && !before) return;
    if (usage->args == OPT_ARGS_FILES) buf_add_str(out, ":files\n");
    if (usage->args == OPT_ARGS_DIRS) buf_add_str(out, ":dirs\n");
}

/* Reads the words before the last as opt_read() does, but applies nothing: behind `--`, or behind the first argument of
 * a command that stops there, no word is an option. */
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

/* ---- the command ---- */

/* bash splits --format=x into three words; put them together again. Returns the new count. */
static int join_equals(int n, char **words, struct buf *joined)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        bool equals = strcmp(words[i], "=") == 0 && kept > 0 && strncmp(words[kept - 1], "--", 2) == 0;
        bool last_pair = equals && i + 2 >= n;
        if (!equals) {
            words[kept++] = words[i];
        } else if (last_pair) { /* the word being typed */
            buf_printf(joined, "%s=%s", words[kept - 1], i + 1 < n ? words[i + 1] : "");
            words[kept - 1] = joined->data;
            i++;
        } else { /* a value given before: the option and its value as two words mean the same */
            words[kept++] = words[++i];
        }
    }
    return kept;
}

/* Position of the command among the words before the last; n when it is not there yet. */
static int find_command(int n, char **words)
{
    for (int i = 0; i + 1 < n; i++)
        if (words[i][0] != '-') return i;
    return n;
}

/* A command's rows exist only while it runs. So it is run with cli->complete set, and its cli_options() answers instead
 * of reading. cli_top() passes over its first word, the program's name: whatever stands before ours will do. */
int cmd_complete(struct cli *cli, int argc, char **argv)
{
    struct buf joined = BUF_INIT, found = BUF_INIT;
    if (argc < 3 || cli->complete) return CLI_DONE;
    bool bash = strcmp(argv[1], "bash") == 0;
    char **words = argv + 2;
    int n = bash ? join_equals(argc - 2, words, &joined) : argc - 2;
    int at = find_command(n, words);
    cli->complete = &found;
    cli->command = at < n ? command_find(words[at]) : NULL;
    if (cli->command)
        cli->command->run(cli, n - at, words + at);
    else if (at == n)
        cli_top(cli, n + 1, words - 1);
    else if (is_python_word(words[at])) /* its options are known to Python alone */
        buf_add_str(&found, ":files\n");
    cli->complete = NULL;
    int rc = cli_put(cli, &found);
    buf_release(&joined);
    buf_release(&found);
    return rc;
}

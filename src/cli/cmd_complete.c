/* SPDX-License-Identifier: MIT
 * cmd_complete.c - `tare __complete SHELL WORD...`: what may stand in place of the last word. Runs no
 * command: the command's own cli_options() answers from its rows. Never prints an error: nobody reads it. */
#include <string.h>

#include "cli/cli.h"
#include "cli/command.h"

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
    cli->complete = NULL;
    int rc = cli_put(cli, &found);
    buf_release(&joined);
    buf_release(&found);
    return rc;
}

/* SPDX-License-Identifier: MIT
 * cmd_help.c - `tare help [command]`: the same texts that -h prints. */
#include "cli/cli.h"
#include "cli/command.h"

static const char about[] =
    "Explain tare, or one of its commands. The text is the one that -h prints.\n"
    "\n"
    "Options may stand before or after arguments, until '--'. A long option takes its value as "
    "--name=value or --name value, a short one as -x value or -xvalue; flags can be bundled (-ab) and "
    "switched off again (--no-name). Names are never abbreviated. Every option can also be set by the "
    "environment, as TARE_<COMMAND>_<OPTION> or TARE_<OPTION>; the command line wins.";

int cmd_help(struct cli *cli, int argc, char **argv)
{
    const struct opt_usage usage = {
        .synopsis = "tare help [options] [<command>]",
        .about = about,
        .max_args = 1,
        .words = command_words(),
    };
    int rc = cli_options(cli, &usage, NULL, &argc, &argv);
    if (rc) return rc;
    char program[] = "tare", flag[] = "--help";
    char *top[] = {program, flag, NULL};
    if (argc == 0) return cli->command = NULL, cli_top(cli, 2, top);
    char *words[] = {program, argv[0], flag, NULL};
    return cli->command = NULL, cli_top(cli, 3, words);
}

/* SPDX-License-Identifier: MIT
 * main.c - the program. Everything it does is in cli_main(), where tests can reach it. */
#include <signal.h>

#include "cli/cli.h"

int main(int argc, char **argv)
{
    struct cli cli;
    signal(SIGPIPE, SIG_IGN); /* a reader that leaves is seen by cli_write(); programs we start get it back */
    cli_init(&cli);
    return cli_main(&cli, argc, argv);
}

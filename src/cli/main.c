/* SPDX-License-Identifier: MIT
 * main.c - the program. Everything it does is in cli_main(), where tests can reach it. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    struct cli cli;
    cli_init(&cli);
    return cli_main(&cli, argc, argv);
}

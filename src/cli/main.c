/* SPDX-License-Identifier: MIT
 * main.c - the program. Everything it does is in cli_main(), where tests can reach it. */
#include <signal.h>
#include <unistd.h>

#include "cli/cli.h"
#include "probe/probe.h"

int main(int argc, char **argv)
{
    struct cli cli;
    bool ignored = signal(SIGPIPE, SIG_IGN) == SIG_IGN; /* a reader that leaves is seen by cli_write() */
    cli_init(&cli);
    cli.ignored_sigpipe = ignored;
    int code = cli_main(&cli, argc, argv);
    if (probe_gpu_is_starting()) _exit(code);
    return code;
}

/* SPDX-License-Identifier: MIT
 * pager.c - long answers through a pager. Only called for a terminal. A pager that cannot be started is no
 * failure: the answer is then printed as it is. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

static void run_pager(const char *program, int from)
{
    if (dup2(from, STDIN_FILENO) < 0) _exit(127);
    signal(SIGPIPE, SIG_DFL);
    setenv("LESS", "FRX", 0); /* quit if it fits one screen, keep colours, leave the text on the screen */
    execl("/bin/sh", "sh", "-c", program, (char *)NULL);
    _exit(127);
}

bool pager_start(struct pager *pager, FILE *out, const char *program)
{
    int ends[2];
    if (!program || !*program || strcmp(program, "cat") == 0) return false;
    fflush(out);
    if (pipe2(ends, O_CLOEXEC) < 0) return false;
    pid_t pid = fork();
    if (pid == 0) run_pager(program, ends[0]);
    close(ends[0]);
    if (pid < 0 || dup2(ends[1], fileno(out)) < 0) {
        close(ends[1]);
        return false;
    }
    close(ends[1]);
    pager->pid = pid;
    return true;
}

void pager_wait(struct pager *pager)
{
    if (!pager->pid) return;
    signal(SIGINT, SIG_IGN); /* for the pager, which owns the terminal now */
    while (waitpid((pid_t)pager->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    pager->pid = 0;
}

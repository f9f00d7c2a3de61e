/* SPDX-License-Identifier: MIT
 * browser.c - see browser.h. */
#include "cli/browser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "subject/peer.h"

#define LOOKS 20 /* at a program that ends at once because it can show nothing, */
#define LOOK_NS 50000000L /* so long apart */

/* NULL: it runs, or ended well. */
static const char *start(const char *program, const char *page)
{
    char *argv[] = {NULL, NULL, NULL};
    memcpy(&argv[0], &program, sizeof argv[0]);
    memcpy(&argv[1], &page, sizeof argv[1]);
    struct spawn_options o = {.exe = program, .argv = argv, .env = environ, .out = -1};
    pid_t pid;
    int status = 0, code = spawn_apart(&pid, &o);
    if (code) return strerror(code);
    for (int i = 0; i < LOOKS; i++) {
        nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
        if (waitpid(pid, &status, WNOHANG) == pid) return status ? "it failed" : NULL;
    }
    return NULL;
}

void browser_open(struct cli *cli, const char *page)
{
    const char *named = secure_getenv("BROWSER"), *program = named && *named ? named : "xdg-open";
    const char *why = start(program, page);
    if (why) cli_note(cli, "no browser: %s: %s; open %s in one", program, why, page);
}

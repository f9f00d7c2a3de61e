/* SPDX-License-Identifier: MIT
 * program.c - what the samples of this folder recorded: a known tree in two threads and a child, or an end by SIGKILL.
 * Compiled against the tare.h of the version that a sample is of; -DPAUSES where that has tare_pause. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tare/tare.h>

static void leaf(void)
{
    TARE_SCOPE("leaf");
    tare_count("tokens", 3);
}

static void *worker(void *unused)
{
    (void)unused;
    TARE_SCOPE("worker");
    for (int i = 0; i < 100; i++) leaf();
    return NULL;
}

#ifdef PAUSES
static void coroutine(void)
{
    tare_scope scope;
    tare_open(&scope, tare_site_new(TARE_SITE_SCOPE, "coroutine", "made.py", 12));
    for (int i = 0; i < 5; i++) {
        tare_pause(&scope);
        leaf();
        tare_resume(&scope, 1);
    }
    tare_end(&scope);
}
#endif

int main(int argc, char **argv)
{
    pthread_t thread;
    TARE_SCOPE("main work");
    for (int i = 0; i < 7; i++) leaf();
    tare_mark("note", "step %d", 42);
    pthread_create(&thread, NULL, worker, NULL);
    pthread_join(thread, NULL);
#ifdef PAUSES
    coroutine();
#endif
    if (argc > 1 && strcmp(argv[1], "kill") == 0) kill(getpid(), SIGKILL);
    pid_t child = fork();
    if (child == 0) {
        TARE_SCOPE("child");
        leaf();
        return 0;
    }
    waitpid(child, NULL, 0);
    return 0;
}

/* SPDX-License-Identifier: MIT
 * startup.c - what TARE_TRACE adds to a program that does nothing: many runs of this program by itself, with
 * and without, in random order, compared by their medians. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tare/tare.h>

#include "batch.h"

extern char **environ;

static double run(char *program, char **env)
{
    char *argv[] = {program, (char[]){"child"}, NULL};
    pid_t pid;
    int status;
    uint64_t start = clock_raw_ns();
    if (posix_spawn(&pid, program, NULL, NULL, argv, env) != 0 || waitpid(pid, &status, 0) < 0 || status != 0)
        return NAN;
    return (double)(clock_raw_ns() - start);
}

static void child(void)
{
    TARE_SCOPE("main");
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        child();
        return 0;
    }
    static struct series with, without;
    char *traced[] = {(char[]){"TARE_TRACE=startup.tare"}, NULL}, *plain[] = {NULL};
    struct rng rng;
    rng_seed(&rng, 3);
    for (int i = 0; i < 300; i++) {
        bool first = rng_next(&rng) & 1;
        if (first) series_add(&with, run(argv[0], traced));
        series_add(&without, run(argv[0], plain));
        if (!first) series_add(&with, run(argv[0], traced));
    }
    unlink("startup.tare");
    unlink("startup.tare.old");
    double added = (series_at(&with, 0.5) - series_at(&without, 0.5)) / 1e6;
    printf("a program that does nothing: %.2f ms, with TARE_TRACE %.2f ms (medians)\n",
           series_at(&without, 0.5) / 1e6, series_at(&with, 0.5) / 1e6);
    bench_say("start-up and close", added, "ms", 2);
    return 0;
}

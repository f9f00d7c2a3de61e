/* SPDX-License-Identifier: MIT
 * signals.c - victim: scopes in signal handlers, on stacks of their own, and left by longjmp.
 * Usage: signals timer | jump | altstack | stop N. How many handlers ran goes to t.tare.handled. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <pthread.h>
#include <unistd.h>

#include <tare/tare.h>

static volatile long handled;
static sigjmp_buf back;

static void handler(int sig)
{
    (void)sig;
    TARE_SCOPE("handler");
    {
        TARE_SCOPE("in handler");
        tare_count("handled", 1);
    }
    handled++;
}

static void jumper(int sig)
{
    (void)sig;
    TARE_SCOPE("jumped");
    handled++;
    siglongjmp(back, 1);
}

static void work(long n)
{
    for (long i = 0; i < n; i++) {
        TARE_SCOPE("main");
        for (int k = 0; k < 3; k++) {
            TARE_SCOPE("inner");
            tare_count("steps", 2);
        }
        if (i % 64 == 0) tare_mark("mark", "%ld", i);
    }
}

static void tick(void)
{
    struct itimerval every = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &every, NULL);
}

static void quiet(void)
{
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
}

static void on(int sig, void (*fn)(int), int flags)
{
    struct sigaction sa = {.sa_handler = fn, .sa_flags = flags};
    sigaction(sig, &sa, NULL);
}

static void jumps(long n)
{
    on(SIGUSR1, jumper, SA_NODEFER);
    for (volatile long i = 0; i < n; i++) {
        TARE_SCOPE("kept");
        if (sigsetjmp(back, 1) == 0) {
            TARE_SCOPE("left");
            TARE_SCOPE("left too");
            raise(SIGUSR1);
        }
    }
}

/* The signal stack lies just above the thread's own: nothing may be taken for left by longjmp. */
static void *with_altstack(void *p)
{
    stack_t ss = {.ss_sp = p, .ss_size = 64 << 10};
    sigaltstack(&ss, NULL);
    on(SIGUSR2, handler, SA_ONSTACK);
    for (int i = 0; i < 1000; i++) {
        TARE_SCOPE("main");
        TARE_SCOPE("inner");
        raise(SIGUSR2);
    }
    ss.ss_flags = SS_DISABLE;
    sigaltstack(&ss, NULL);
    return NULL;
}

static void altstack(void)
{
    char *room = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attr;
    pthread_t id;
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, room, 512 << 10);
    pthread_create(&id, &attr, with_altstack, room + (512 << 10));
    pthread_join(id, NULL);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    long n = argc > 2 ? atol(argv[2]) : 100000;
    if (strcmp(what, "timer") == 0) {
        on(SIGALRM, handler, SA_RESTART);
        tick();
        work(n);
        quiet();
    }
    if (strcmp(what, "jump") == 0) jumps(n);
    if (strcmp(what, "altstack") == 0) altstack();
    if (strcmp(what, "stop") == 0) work(n);
    FILE *f = fopen("t.tare.handled", "w");
    if (f) fprintf(f, "%ld\n", handled);
    printf("done\n");
    return f ? fclose(f) : 1;
}

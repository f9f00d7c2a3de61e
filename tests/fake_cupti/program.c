/* SPDX-License-Identifier: MIT
 * program.c - does what the CUDA driver and NVTX do with an injected library, no more. Argument: what then happens:
 * "exit" (code 7), "kill", "term", "_exit", "fork", "fork-exit" (the child ends as programs do, with ranges), "spawn"
 * (itself once more), "stay" (for five seconds), "dlclose", "nvtx-first" (a child is forked within
 * a range and uses CUDA itself), "two" (a second copy of NVTX), "left-open" (a thread ends within a range), "ranges"
 * (four threads with more ranges than there is room for), "launches" (eight threads that launch within ranges),
 * "racing" (they still do when the program ends). */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef void plain_fn(void);
static plain_fn *push, *pop, *push_2, *pop_2;

static int get_table_2(int module, plain_fn ****table, unsigned *size)
{
    static plain_fn **core[16];
    core[9] = &push_2;
    core[11] = &pop_2;
    *table = core;
    *size = module == 1 ? 16 : 0;
    return module == 1;
}

static const void *get_export_2(uint32_t id)
{
    static struct {
        size_t bytes;
        int (*get)(int, plain_fn ****, unsigned *);
    } table = {sizeof table, get_table_2};
    return id == 1 ? &table : NULL;
}

static int get_table(int module, plain_fn ****table, unsigned *size)
{
    static plain_fn **core[16];
    core[9] = &push;
    core[11] = &pop;
    *table = core;
    *size = module == 1 ? 16 : 0;
    return module == 1;
}

static const void *get_export(uint32_t id)
{
    static struct {
        size_t bytes;
        int (*get)(int, plain_fn ****, unsigned *);
    } table = {sizeof table, get_table};
    return id == 1 ? &table : NULL;
}

static void nap(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void *many_ranges(void *unused)
{
    enum { ROUNDS = 10000, DEEP = 70 };
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        ((int (*)(const char *))push)("outer");
        ((int (*)(const char *))push)("inner");
        ((int (*)(void))pop)();
        ((int (*)(void))pop)();
    }
    for (int i = 0; i < DEEP; i++) ((int (*)(const char *))push)("deep");
    for (int i = 0; i < DEEP; i++) ((int (*)(void))pop)();
    return NULL;
}

static void in_four_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, many_ranges, NULL) != 0) abort();
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

/* ---- launches ---- */

enum { LAUNCHERS = 8, LAUNCHES = 5000 };
static void (*fake_launch)(unsigned thread);

static void *launch_within_ranges(void *arg)
{
    for (int i = 0; i < LAUNCHES; i++) {
        ((int (*)(const char *))push)("launching");
        fake_launch((unsigned)(uintptr_t)arg);
        ((int (*)(void))pop)();
    }
    return NULL;
}

static void *launch_for_ever(void *arg)
{
    for (;;) fake_launch((unsigned)(uintptr_t)arg);
    return NULL;
}

static void launch_in_threads(void *(*fn)(void *), int wait)
{
    pthread_t threads[LAUNCHERS];
    void *cupti = dlopen(getenv("TARE_CUPTI"), RTLD_NOW);
    *(void **)&fake_launch = dlsym(cupti, "fake_launch");
    for (uintptr_t i = 0; i < LAUNCHERS; i++)
        if (pthread_create(&threads[i], NULL, fn, (void *)i) != 0) abort();
    for (int i = 0; wait && i < LAUNCHERS; i++) pthread_join(threads[i], NULL);
}

static void *leave_open(void *unused)
{
    (void)unused;
    ((int (*)(const char *))push)("left open");
    return NULL;
}

static void leave_a_range_open(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, leave_open, NULL) != 0) abort();
    pthread_join(thread, NULL);
}

static void start_again(const char *path)
{
    char *const args[] = {(char *)(uintptr_t)path, (char *)(uintptr_t) "quiet", NULL};
    pid_t child;
    if (posix_spawn(&child, path, NULL, NULL, args, environ) == 0) waitpid(child, NULL, 0);
}

static int is(const char *how, const char *what)
{
    return strcmp(how, what) == 0;
}

int main(int argc, char **argv)
{
    const char *path = getenv("CUDA_INJECTION64_PATH"), *how = argc > 1 ? argv[1] : "exit";
    void *lib = path ? dlopen(path, RTLD_NOW) : NULL;
    if (!is(how, "quiet")) printf("output of the program\n");
    fflush(stdout);
    if (!lib) return 8;
    int (*inject)(void) = (int (*)(void))dlsym(lib, "InitializeInjection");
    int (*nvtx)(const void *(*)(uint32_t)) =
        (int (*)(const void *(*)(uint32_t)))dlsym(lib, "InitializeInjectionNvtx2");
    if (is(how, "nvtx-first")) {
        int status = 0;
        nvtx(get_export);
        ((int (*)(const char *))push)("of the parent");
        if (fork() != 0) return wait(&status) > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 10;
    }
    if (inject() != 1) return 9;
    nvtx(get_export);
    if (is(how, "two")) nvtx(get_export_2);
    if (push) ((int (*)(const char *))push)("my range\x1b[0m");
    if (push_2) ((int (*)(const char *))push_2)("of the other copy");
    if (pop_2) ((int (*)(void))pop_2)();
    if (is(how, "ranges")) in_four_threads();
    if (is(how, "left-open")) leave_a_range_open();
    if (is(how, "launches")) launch_in_threads(launch_within_ranges, 1);
    if (is(how, "racing")) launch_in_threads(launch_for_ever, 0);
    if (is(how, "spawn")) start_again(argv[0]);
    if (is(how, "dlclose")) dlclose(lib);
    if (is(how, "fork") && fork() == 0) _exit(0);
    if (is(how, "fork-exit") && fork() == 0) {
        leave_open(NULL);
        exit(3);
    }
    if (is(how, "fork") || is(how, "fork-exit")) wait(NULL);
    if (!is(how, "exit") && !is(how, "quiet")) nap(1500); /* a flush has come */
    if (is(how, "stay")) nap(3500);
    if (pop) ((int (*)(void))pop)();
    if (is(how, "kill")) kill(getpid(), SIGKILL);
    if (is(how, "term")) kill(getpid(), SIGTERM);
    if (is(how, "_exit")) _exit(7);
    return 7;
}

/* SPDX-License-Identifier: MIT
 * program.c - does what the CUDA driver and NVTX do with an injected library, no more. Argument: what then happens:
 * "exit" (code 7), "kill", "_exit", "fork", "ranges" (four threads with more ranges than there is room for). */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef void plain_fn(void);
static plain_fn *push, *pop;

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

int main(int argc, char **argv)
{
    const char *path = getenv("CUDA_INJECTION64_PATH"), *how = argc > 1 ? argv[1] : "exit";
    void *lib = path ? dlopen(path, RTLD_NOW) : NULL;
    printf("output of the program\n");
    fflush(stdout);
    if (!lib) return 8;
    int (*inject)(void) = (int (*)(void))dlsym(lib, "InitializeInjection");
    int (*nvtx)(const void *(*)(uint32_t)) =
        (int (*)(const void *(*)(uint32_t)))dlsym(lib, "InitializeInjectionNvtx2");
    if (inject() != 1) return 9;
    nvtx(get_export);
    if (push) ((int (*)(const char *))push)("my range\x1b[0m");
    if (strcmp(how, "ranges") == 0) in_four_threads();
    if (strcmp(how, "fork") == 0 && fork() == 0) _exit(0);
    if (strcmp(how, "fork") == 0) wait(NULL);
    if (strcmp(how, "exit") != 0) nap(1500); /* a flush has come */
    if (pop) ((int (*)(void))pop)();
    if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
    if (strcmp(how, "_exit") == 0) _exit(7);
    return 7;
}

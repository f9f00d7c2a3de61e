/* SPDX-License-Identifier: MIT
 * memory_program.c - allocates and frees in known ways, for tests of the agent: the first word says which. Blocks that
 * stay have sizes that nobody else asks for. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEP(p) __asm__ volatile("" ::"r"(p) : "memory")
#define PLAIN __attribute__((noinline))

PLAIN static void *innermost_function(size_t n)
{
    void *p = malloc(n);
    KEEP(p);
    return p;
}

PLAIN static void *function_around_it(size_t n)
{
    void *p = innermost_function(n);
    KEEP(p);
    return p;
}

static int each_way(void)
{
    void *p = NULL;
    KEEP(function_around_it(70001));
    KEEP(calloc(7, 10003));
    KEEP(realloc(malloc(10), 70003));
    KEEP(reallocarray(NULL, 7, 10005));
    KEEP(memalign(64, 70007));
    KEEP(aligned_alloc(64, 70016));
    if (posix_memalign(&p, 64, 70009)) return 1;
    KEEP(valloc(70011));
    free(innermost_function(70013)); /* gone */
    free(realloc(malloc(70015), 70017));
    char *map = mmap(NULL, 3 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(map, 1 << 20);
    return map == MAP_FAILED;
}

static void *handed[64];
static void *hand_over(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        size_t at = ((size_t)(uintptr_t)arg * 7 + (size_t)i) % 64;
        free(__atomic_exchange_n(&handed[at], malloc(71000 + (size_t)i % 8), __ATOMIC_ACQ_REL));
    }
    return NULL;
}

static int threads(void)
{
    pthread_t t[8];
    for (int i = 0; i < 8; i++)
        if (pthread_create(&t[i], NULL, hand_over, (void *)(uintptr_t)i)) return 1;
    for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < 64; i++) free(handed[i]);
    return 0;
}

static int fork_and_exec(char **argv)
{
    KEEP(malloc(72001));
    if (fork() == 0) {
        KEEP(malloc(72003));
        if (fork() == 0) { /* becomes another program, with a record left behind */
            KEEP(malloc(72005));
            execl(argv[0], argv[0], "each", (char *)NULL);
            _exit(9);
        }
        wait(NULL);
        exit(0);
    }
    int status;
    wait(&status);
    return status != 0;
}

static sigjmp_buf back;
static void jump(int sig)
{
    (void)sig;
    siglongjmp(back, 1);
}

/* Out of whatever is under way, 200 times; then it still records. */
static int jumps(void)
{
    signal(SIGALRM, jump);
    for (volatile int i = 0; i < 200; i++) {
        if (sigsetjmp(back, 1)) continue;
        ualarm(100 + (unsigned)i % 50, 0);
        for (;;) {
            sigset_t alarm;
            sigemptyset(&alarm);
            sigaddset(&alarm, SIGALRM);
            sigprocmask(SIG_BLOCK, &alarm, NULL); /* malloc itself must not be left in the middle */
            void *p = malloc(100);
            sigprocmask(SIG_UNBLOCK, &alarm, NULL);
            void *q = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (q != MAP_FAILED) munmap(q, 4096);
            sigprocmask(SIG_BLOCK, &alarm, NULL);
            free(p);
            sigprocmask(SIG_UNBLOCK, &alarm, NULL);
        }
    }
    KEEP(malloc(73001));
    return 0;
}

static int refused(void)
{
    struct rlimit small = {256 << 20, 256 << 20};
    setrlimit(RLIMIT_AS, &small);
    errno = 0;
    void *p = malloc((size_t)1 << 40);
    int why = errno;
    void *q = innermost_function(74001);
    q = realloc(q, (size_t)1 << 40) ? NULL : q; /* still there */
    printf("%d %d %d\n", p == NULL, why == ENOMEM, q != NULL);
    return 0;
}

static int libraries(void)
{
    for (int i = 0; i < 20; i++) {
        void *lib = dlopen("libm.so.6", RTLD_NOW), *other = dlopen("libutil.so.1", RTLD_NOW);
        KEEP(function_around_it(75000));
        if (lib) dlclose(lib);
        if (other) dlclose(other);
    }
    return 0;
}

static int many(void)
{
    for (int i = 0; i < 64 << 10; i++) KEEP(innermost_function(1024));
    return 0;
}

static int grow(void)
{
    for (int i = 0; i < 400 << 10; i++) KEEP(innermost_function(1024));
    return 0;
}

/* 2^17 stacks, each of its own. */
PLAIN static void paths(int depth)
{
    if (depth == 0) {
        void *p = malloc(77001);
        KEEP(p);
        free(p);
        return;
    }
    paths(depth - 1);
    KEEP(&depth); /* no tail call: both places stay */
    paths(depth - 1);
    KEEP(&depth);
}

static int many_paths(void)
{
    paths(17);
    KEEP(malloc(77003));
    return 0;
}

static int killed(void)
{
    for (int i = 0; i < 5000; i++) KEEP(malloc(76001));
    raise(SIGKILL);
    return 1;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int rc = 9;
    if (!strcmp(what, "each")) rc = each_way();
    if (!strcmp(what, "threads")) rc = threads();
    if (!strcmp(what, "fork")) rc = fork_and_exec(argv);
    if (!strcmp(what, "jumps")) rc = jumps();
    if (!strcmp(what, "refused")) rc = refused();
    if (!strcmp(what, "libraries")) rc = libraries();
    if (!strcmp(what, "many")) rc = many();
    if (!strcmp(what, "grow")) rc = grow();
    if (!strcmp(what, "killed")) rc = killed();
    if (!strcmp(what, "paths")) rc = many_paths();
    printf("%s: %d\n", what, rc);
    return rc;
}

/* SPDX-License-Identifier: MIT
 * guest.c - a program in hard places: with raised privileges, on a disk that fills up or loses the live file, with
 * limits that refuse the recorder more room, with real-time threads. Prints only what is the same without a trace,
 * except the words that begin with '#'. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tare/tare.h>

static volatile int stop;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void some_scopes(int n)
{
    for (int i = 0; i < n; i++) {
        TARE_SCOPE("outer");
        TARE_SCOPE("inner");
    }
}

/* An eighth is kept for a while. Not for ever: a heap that grows is an mprotect() for each page in glibc, and its
 * threads hold each other up at the lock of the address space, with us or without. */
static void some_blocks(int n)
{
    static __thread char *kept[64];
    static __thread unsigned at;
    for (int i = 0; i < n; i++) {
        char *volatile p = malloc(1000 + (size_t)i % 64);
        if (p) p[0] = 1;
        if (i % 8 == 0) {
            free(kept[++at % 64]);
            kept[at % 64] = p;
        } else {
            free(p);
        }
    }
}

/* The share of its life that this thread neither ran nor wanted to: neighbours on the processor do not matter. */
static double share_blocked(uint64_t since)
{
    unsigned long long ran = 0, queued = 0;
    double life = (double)(now_ns() - since);
    FILE *f = fopen("/proc/thread-self/schedstat", "r");
    int n = f ? fscanf(f, "%llu %llu", &ran, &queued) : 0;
    if (f) fclose(f);
    return n == 2 ? 1 - (double)(ran + queued) / life : 0;
}

static void *work(void *blocked)
{
    uint64_t since = now_ns();
    while (!stop) {
        some_scopes(1000);
        some_blocks(10);
    }
    *(double *)blocked = share_blocked(since);
    return NULL;
}

/* Four threads record while the disk that the trace is on fills up; then more for as long. They themselves wait for
 * nothing: '#' and the share of its life that one of them was held up, the longest. */
static int fill(const char *folder, int seconds)
{
    static char block[1 << 16];
    char name[4096];
    pthread_t t[4];
    double blocked[4], most = 0;
    uint64_t until = now_ns() + (uint64_t)seconds * 1000000000u;
    snprintf(name, sizeof name, "%s/filler", folder);
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, work, &blocked[i]);
    int fd = open(name, O_CREAT | O_WRONLY, 0600);
    while (now_ns() < until) {
        ssize_t n = write(fd, block, sizeof block);
        if (n <= 0) usleep(1000);
    }
    stop = 1;
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
        if (blocked[i] > most) most = blocked[i];
    }
    printf("#blocked %.3f\nran to its end\n", most);
    return 7;
}

/* Scopes and allocations go on while somebody else truncates the live files: waits for a line on stdin. */
static int wait_and_go(void)
{
    char line[16];
    some_scopes(5000);
    some_blocks(5000);
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 1;
    some_scopes(200000);
    some_blocks(20000);
    puts("ran to its end");
    return 7;
}

static void *wait_in_thread(void *rc)
{
    *(int *)rc = wait_and_go();
    return NULL;
}

/* In a thread that was born with all signals blocked, as those of the CUDA driver and of many libraries are. */
static int blocked(void)
{
    sigset_t all;
    pthread_t t;
    int rc = 1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    if (pthread_create(&t, NULL, wait_in_thread, &rc) == 0) pthread_join(t, NULL);
    return rc;
}

static void *record_some(void *unused)
{
    (void)unused;
    some_scopes(2000);
    return NULL;
}

static void one_thread(void)
{
    pthread_t t;
    if (pthread_create(&t, NULL, record_some, NULL) == 0) pthread_join(t, NULL);
}

/* A thread takes over the place of one that ended, whose pages are gone; those of the header are not. */
static int take_over(void)
{
    char line[16];
    for (int i = 0; i < 300; i++) one_thread();
    usleep(200000); /* the recorder has taken leave of them */
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 1;
    one_thread();
    puts("ran to its end");
    return 7;
}

/* A page that is missing is the program's own: it ends by SIGBUS, as without us. */
static int own_page(void)
{
    int fd = memfd_create("own", 0);
    char *p =
        ftruncate(fd, 8192) == 0 ? mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (p == MAP_FAILED || ftruncate(fd, 0) < 0) return 1;
    wait_and_go();
    fflush(stdout);
    p[4096] = 1;
    puts("there is no such page");
    return 1;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The middle of many batches, in processor time of this thread (the kernel's part of it as well): who else wants the
 * processor meanwhile does not matter. */
static void *measure_batches(void *median)
{
    uint64_t took[501];
    for (int i = 0; i < 501; i++) {
        uint64_t from = cpu_ns();
        some_scopes(500);
        took[i] = cpu_ns() - from;
    }
    qsort(took, 501, sizeof *took, by_value);
    *(double *)median = (double)took[250];
    return NULL;
}

static int taken;

static void *take_a_slot(void *unused)
{
    (void)unused;
    some_scopes(1);
    __atomic_fetch_add(&taken, 1, __ATOMIC_RELEASE);
    while (!stop) usleep(10000);
    return NULL;
}

/* How much longer scopes take when the recorder is refused more room: in threads that come when others have taken what
 * was left, two at once. '#' and the ratio of the medians of batches. */
static int refused(void)
{
    enum { TAKERS = 700 };
    pthread_t t[2], takers[TAKERS];
    double healthy[2], now[2];
    struct rlimit before, none;
    getrlimit(RLIMIT_FSIZE, &before);
    none = (struct rlimit){0, before.rlim_max};
    some_scopes(3000);
    for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, measure_batches, &healthy[i]);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    setrlimit(RLIMIT_FSIZE, &none);
    int n = 0;
    while (n < TAKERS && pthread_create(&takers[n], NULL, take_a_slot, NULL) == 0) n++;
    while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) < n) usleep(1000);
    for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, measure_batches, &now[i]);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    stop = 1;
    while (n > 0) pthread_join(takers[--n], NULL);
    setrlimit(RLIMIT_FSIZE, &before); /* stdout may be a file */
    printf("#ratio %.3f\n", (now[0] + now[1]) / (healthy[0] + healthy[1]));
    return 7;
}

/* Lowers its own limit of address space long after recording began, and counts what malloc still has for it: before
 * and after scopes that would like much more room than that. */
static int lower_limit(void)
{
    enum { MB = 1 << 20, LIMIT = 64 * MB, BLOCK = 10 * MB };
    struct rlimit limit;
    some_scopes(1000);
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = LIMIT;
    setrlimit(RLIMIT_AS, &limit);
    void *first = malloc(2 * BLOCK);
    some_scopes(1000000);
    void *second = malloc(2 * BLOCK);
    printf("%s %s\n", first ? "had it" : "refused", second ? "had it" : "refused");
    free(first);
    free(second);
    return 7;
}

/* ---- real time ---- */

enum { NAMES = 200000 };
static tare_site *names;
static int next_name;

static void use_a_new_name(void)
{
    int i = __atomic_fetch_add(&next_name, 1, __ATOMIC_RELAXED);
    if (i >= NAMES) return;
    tare_scope s;
    tare_begin(&s, &names[i]);
    tare_end(&s);
}

static void *use_names(void *unused)
{
    (void)unused;
    while (!stop) use_a_new_name();
    return NULL;
}

static void *real_time(void *longest)
{
    struct sched_param p = {.sched_priority = 10};
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &p) != 0) {
        puts("#no real-time here");
        stop = 1;
        return NULL;
    }
    while (!stop) {
        uint64_t from = now_ns();
        use_a_new_name();
        uint64_t took = now_ns() - from;
        if (took > *(uint64_t *)longest) *(uint64_t *)longest = took;
        usleep(200);
    }
    return NULL;
}

/* All on one processor: a real-time thread meets names whose lock a preempted thread holds. # and its longest wait. */
static int rt(int seconds)
{
    cpu_set_t one;
    pthread_t t[4];
    uint64_t longest = 0;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    sched_setaffinity(0, sizeof one, &one);
    names = calloc(NAMES, sizeof *names);
    if (!names) return 1;
    for (int i = 0; i < NAMES; i++)
        names[i] =
            (tare_site){.name = "name", .file = __FILE__, .line = (uint32_t)i, .kind = TARE_SITE_SCOPE};
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, use_names, NULL);
    pthread_create(&t[3], NULL, real_time, &longest);
    for (int i = 0; i < seconds * 10 && !stop; i++) usleep(100000);
    stop = 1;
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    printf("#longest_ms %.1f\n", (double)longest / 1e6);
    free(names);
    return 7;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "privileged") == 0) {
        some_scopes(10);
        printf("AT_SECURE %lu, recording %d\n", getauxval(AT_SECURE), (int)tare_recording);
        return 7;
    }
    if (strcmp(what, "fill") == 0 && argc > 3) return fill(argv[2], atoi(argv[3]));
    if (strcmp(what, "wait") == 0) return wait_and_go();
    if (strcmp(what, "takeover") == 0) return take_over();
    if (strcmp(what, "blocked") == 0) return blocked();
    if (strcmp(what, "own") == 0) return own_page();
    if (strcmp(what, "refused") == 0) return refused();
    if (strcmp(what, "limit") == 0) return lower_limit();
    if (strcmp(what, "rt") == 0 && argc > 2) return rt(atoi(argv[2]));
    some_scopes(10);
    return 7;
}

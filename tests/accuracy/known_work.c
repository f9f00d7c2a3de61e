/* SPDX-License-Identifier: MIT
 * known_work.c - work whose duration the program knows by itself: each scope is also timed from within with
 * clock_gettime, and per kind its calls, their sum, the sum of their squared deviations and how long the processor was
 * away between that clock and tare's are printed for known_work.sh to hold against what tare says. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <tare/tare.h>

enum { SPIN, NAP, SHORT, PARENT, KINDS };
static const char *const names[KINDS] = {"spin", "nap", "short", "parent"};
static uint64_t total[KINDS], calls[KINDS], away[KINDS], tokens;
static double squares[KINDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What a call took, from within and (a clock read and a scope more at each end) from around the scope: a difference of
 * more than AWAY_NS is time in which somebody else ran. */
struct times {
    uint64_t before, start, end;
};
enum { AWAY_NS = 10000 };

static void note(int kind, const struct times *t)
{
    uint64_t ns = t->end - t->start, gap = now() - t->before - ns;
    pthread_mutex_lock(&lock);
    total[kind] += ns;
    squares[kind] += (double)ns * (double)ns;
    away[kind] += gap > AWAY_NS ? gap : 0;
    calls[kind]++;
    pthread_mutex_unlock(&lock);
}

static void spin_until(uint64_t end)
{
    while (now() < end) continue;
}

static void spin(void)
{
    struct times t = {.before = now()};
    {
        TARE_SCOPE("spin");
        t.start = now();
        spin_until(t.start + 1000000);
        t.end = now();
    }
    note(SPIN, &t);
}

static void nap(void)
{
    struct times t = {.before = now()};
    {
        TARE_SCOPE("nap");
        t.start = now();
        nanosleep(&(struct timespec){0, 2000000}, NULL);
        t.end = now();
    }
    note(NAP, &t);
}

static void shortly(void)
{
    struct times t = {.before = now()};
    {
        TARE_SCOPE("short");
        t.start = now();
        spin_until(t.start + 5000);
        t.end = now();
    }
    note(SHORT, &t);
    tare_count("tokens", 3);
    tokens += 3;
}

static void parent(void)
{
    struct times t = {.before = now()};
    {
        TARE_SCOPE("parent");
        t.start = now();
        for (int i = 0; i < 5; i++) shortly();
        t.end = now();
    }
    note(PARENT, &t);
}

static void *worker(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20; i++) spin();
    return NULL;
}

int main(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, worker, NULL);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < 20; i++) nap();
    for (int i = 0; i < 2000; i++) parent();
    for (int k = 0; k < KINDS; k++)
        printf(
            "%s %llu %llu %.0f %llu\n", names[k], (unsigned long long)calls[k], (unsigned long long)total[k],
            squares[k] - (double)total[k] * (double)total[k] / (double)calls[k], (unsigned long long)away[k]);
    printf("tokens %llu 0 0 0\n", (unsigned long long)tokens);
    return 0;
}

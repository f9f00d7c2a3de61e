/* SPDX-License-Identifier: MIT
 * known_work.c - work whose duration the program knows by itself: each scope is also timed from within with
 * clock_gettime, and the sums are printed for known_work.sh to hold against what tare says. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <tare/tare.h>

enum { SPIN, NAP, SHORT, PARENT, KINDS };
static const char *const names[KINDS] = {"spin", "nap", "short", "parent"};
static uint64_t total[KINDS], calls[KINDS], tokens;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void note(int kind, uint64_t ns)
{
    pthread_mutex_lock(&lock);
    total[kind] += ns;
    calls[kind]++;
    pthread_mutex_unlock(&lock);
}

static void spin_until(uint64_t end)
{
    while (now() < end) continue;
}

static void spin(void)
{
    uint64_t start, end;
    {
        TARE_SCOPE("spin");
        start = now();
        spin_until(start + 1000000);
        end = now();
    }
    note(SPIN, end - start);
}

static void nap(void)
{
    uint64_t start, end;
    {
        TARE_SCOPE("nap");
        start = now();
        nanosleep(&(struct timespec){0, 2000000}, NULL);
        end = now();
    }
    note(NAP, end - start);
}

static void shortly(void)
{
    uint64_t start, end;
    {
        TARE_SCOPE("short");
        start = now();
        spin_until(start + 5000);
        end = now();
    }
    note(SHORT, end - start);
    tare_count("tokens", 3);
    tokens += 3;
}

static void parent(void)
{
    uint64_t start, end;
    {
        TARE_SCOPE("parent");
        start = now();
        for (int i = 0; i < 5; i++) shortly();
        end = now();
    }
    note(PARENT, end - start);
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
        printf("%s %llu %llu\n", names[k], (unsigned long long)calls[k], (unsigned long long)total[k]);
    printf("tokens %llu 0\n", (unsigned long long)tokens);
    return 0;
}

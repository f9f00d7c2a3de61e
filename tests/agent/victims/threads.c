/* SPDX-License-Identifier: MIT
 * threads.c - victim: threads that come, go, crowd and die, each with scopes. Usage: threads WHAT [N] */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tare/tare.h>

static atomic_long done;
static pthread_key_t key;
static sem_t gate, arrived;

static void work(void)
{
    TARE_SCOPE("work");
    {
        TARE_SCOPE("inner");
        tare_count("items", 3);
    }
    done++;
}

static void *once(void *p)
{
    work();
    return p;
}

static void *leave(void *p)
{
    TARE_SCOPE("left"); /* never ends: pthread_exit takes the thread away */
    work();
    pthread_exit(p);
}

static void *wait_at_gate(void *p)
{
    work();
    sem_post(&arrived);
    sem_wait(&gate);
    work();
    return p;
}

static void *forever(void *p)
{
    work();
    sem_post(&arrived);
    for (;;) {
        TARE_SCOPE("loop");
        TARE_SCOPE("deeper");
    }
    return p;
}

static void *sleeper(void *p)
{
    work();
    sem_post(&arrived);
    sem_wait(&gate);
    return p;
}

static void *ends_all(void *p)
{
    work();
    printf("leaving from a thread\n");
    exit(5);
    return p;
}

/* Only scopes, no cancellation point of its own before the last line: it must get there. */
static void *cancelled(void *p)
{
    char names[200][8];
    pthread_cancel(pthread_self());
    for (int i = 0; i < 200; i++) {
        snprintf(names[i], sizeof names[i], "c%d", i);
        tare_site *s = tare_site_new(TARE_SITE_SCOPE, names[i], "threads.c", 1);
        for (int k = 0; k < 50; k++) {
            tare_scope scope = {{0}};
            if (s && tare_recording) tare_begin(&scope, s);
            if (scope.private_[0]) tare_end(&scope);
        }
    }
    done++;
    pthread_testcancel();
    printf("not reached\n");
    return p;
}

static void destructor(void *p)
{
    TARE_SCOPE("destructor");
    work();
    long rounds = (long)p;
    if (rounds > 1) pthread_setspecific(key, (void *)(rounds - 1));
}

static void *with_key(void *p)
{
    pthread_setspecific(key, (void *)3);
    work();
    return p;
}

static void at_exit_scope(void)
{
    TARE_SCOPE("atexit");
    printf("atexit\n");
}

__attribute__((constructor)) static void early(void)
{
    TARE_SCOPE("constructor");
}
__attribute__((destructor)) static void late(void)
{
    TARE_SCOPE("late");
}

static long launch(void *(*fn)(void *), long n, int detached, pthread_t *ids)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    if (detached) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    long i = 0;
    for (pthread_t id; i < n && pthread_create(ids ? &ids[i] : &id, &attr, fn, NULL) == 0;) i++;
    pthread_attr_destroy(&attr);
    return i;
}

static void waves(void *(*fn)(void *), long n, long wave)
{
    static pthread_t ids[20000];
    for (long left = n; left > 0; left -= wave) {
        long got = launch(fn, left < wave ? left : wave, 0, ids);
        for (long i = 0; i < got; i++) pthread_join(ids[i], NULL);
    }
    printf("%ld\n", (long)done);
}

static void crowd(long n)
{
    static pthread_t ids[20000];
    long got = launch(wait_at_gate, n, 0, ids);
    for (long i = 0; i < got; i++) sem_wait(&arrived);
    for (long i = 0; i < got; i++) sem_post(&gate);
    for (long i = 0; i < got; i++) pthread_join(ids[i], NULL);
    printf("%ld threads at once, %ld done\n", got, (long)done);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    long n = argc > 2 ? atol(argv[2]) : 4;
    sem_init(&gate, 0, 0);
    sem_init(&arrived, 0, 0);
    pthread_key_create(&key, destructor);
    if (strcmp(what, "waves") == 0) waves(once, n, 100);
    if (strcmp(what, "leave") == 0) waves(leave, n, 50);
    if (strcmp(what, "cancel") == 0) waves(cancelled, n, 4);
    if (strcmp(what, "key") == 0) waves(with_key, n, 50);
    if (strcmp(what, "crowd") == 0) crowd(n);
    if (strcmp(what, "detached") == 0) {
        launch(wait_at_gate, n, 1, NULL);
        for (long i = 0; i < n; i++) sem_wait(&arrived);
        for (long i = 0; i < n; i++) sem_post(&gate);
        while (done < 2 * n) usleep(1000);
        usleep(20000);
    }
    if (strcmp(what, "alive") == 0 || strcmp(what, "asleep") == 0) {
        launch(what[1] == 'l' ? forever : sleeper, n, 0, NULL);
        for (long i = 0; i < n; i++) sem_wait(&arrived);
        usleep(what[1] == 'l' ? 20000 : 1000);
        return 7;
    }
    if (strcmp(what, "exit") == 0) {
        launch(ends_all, 1, 0, NULL);
        pause();
    }
    if (strcmp(what, "main") == 0) { /* main ends first, the last thread ends the process */
        atexit(at_exit_scope);
        launch(once, n, 0, NULL);
        work();
        pthread_exit(NULL);
    }
    if (strcmp(what, "atexit") == 0) {
        atexit(at_exit_scope);
        work();
    }
    return 0;
}

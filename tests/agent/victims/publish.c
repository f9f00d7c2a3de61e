/* SPDX-License-Identifier: MIT
 * publish.c - victim: tells in a shared page of its own what it has done, after it did it, so that whoever kills it
 * knows what must be on record. Usage: publish PAGE THREADS loop | stop CALLS | fork */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tare/tare.h>

enum { STRIDE = 8 }; /* a cache line each */
static uint64_t *page;
static uint64_t most = UINT64_MAX;

static void spin(void)
{
    for (volatile int i = 0; i < 100; i++) continue;
}

#define WORKER(name)                                                                               \
    static void run_##name(uint64_t *at)                                                           \
    {                                                                                              \
        while (*at < most) {                                                                       \
            {                                                                                      \
                TARE_SCOPE(#name);                                                                 \
                spin();                                                                            \
            }                                                                                      \
            __atomic_store_n(at, *at + 1, __ATOMIC_RELEASE);                                       \
        }                                                                                          \
    }
WORKER(w0)
WORKER(w1)
WORKER(w2)
WORKER(w3)

static void *worker(void *p)
{
    static void (*const run[4])(uint64_t *) = {run_w0, run_w1, run_w2, run_w3};
    long i = (long)p;
    prctl(PR_SET_NAME, (char[]){'w', (char)('0' + i), 0});
    run[i](&page[i * STRIDE]);
    return NULL;
}

static void fork_for_ever(void)
{
    for (;;) {
        if (fork() == 0) {
            for (int i = 0; i < 5; i++) {
                {
                    TARE_SCOPE("w0");
                    spin();
                }
                __atomic_fetch_add(&page[0], 1, __ATOMIC_RELEASE);
            }
            if (page[0] % 2) _exit(0);
            exit(0);
        }
        {
            TARE_SCOPE("w1");
            spin();
        }
        __atomic_fetch_add(&page[STRIDE], 1, __ATOMIC_RELEASE);
        wait(NULL);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    int fd = open(argv[1], O_RDWR), n = atoi(argv[2]);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED) return 2;
    if (strcmp(argv[3], "fork") == 0) fork_for_ever();
    if (argc > 4) most = strtoull(argv[4], NULL, 10);
    pthread_t ids[4];
    for (long i = 1; i < n && i < 4; i++) pthread_create(&ids[i], NULL, worker, (void *)i);
    worker(NULL);
    for (long i = 1; i < n && i < 4; i++) pthread_join(ids[i], NULL);
    __atomic_store_n(&page[4 * STRIDE], 1, __ATOMIC_RELEASE);
    return 0;
}

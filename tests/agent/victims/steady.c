/* SPDX-License-Identifier: MIT
 * steady.c - victim: does what it is told, prints what came of it, minds its own files and signals.
 * Usage: steady CALLS [threads N | alloc MIB | pause US] */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tare/tare.h>

static volatile sig_atomic_t oversize;

static void on_xfsz(int sig)
{
    (void)sig;
    oversize++;
}

static uint64_t work(long n)
{
    uint64_t sum = 1;
    for (long i = 0; i < n; i++) {
        TARE_SCOPE("outer");
        for (int k = 0; k < 4; k++) {
            TARE_SCOPE("inner");
            sum = sum * 6364136223846793005u + (uint64_t)k;
        }
        tare_count("steps", 4);
    }
    return sum;
}

static void *thread_main(void *p)
{
    return (void *)(uintptr_t)work((long)p);
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 1000, m = argc > 3 ? atol(argv[3]) : 0;
    const char *what = argc > 2 ? argv[2] : "";
    if (strcmp(what, "handler") == 0) signal(SIGXFSZ, on_xfsz);
    printf("%016llx\n", (unsigned long long)work(n));
    if (strcmp(what, "alloc") == 0) {
        char *p = malloc((size_t)m << 20);
        if (p) memset(p, 1, (size_t)m << 20);
        printf("allocated: %s\n", p ? "yes" : "no");
    }
    if (strcmp(what, "pause") == 0)
        for (long i = 0; i < 20; i++) {
            usleep((useconds_t)m);
            work(1);
        }
    pthread_t ids[512];
    long got = 0;
    if (strcmp(what, "threads") == 0)
        while (got < m && got < 512 && pthread_create(&ids[got], NULL, thread_main, (void *)n) == 0) got++;
    for (long i = 0; i < got; i++) pthread_join(ids[i], NULL);
    if (got) printf("%ld threads\n", got);
    int fd = open("own", O_RDWR | O_CREAT | O_TRUNC, 0644);
    printf("own file %d: %zd, %d signals\n", fd, fd < 0 ? (ssize_t)-1 : write(fd, "mine\n", 5),
           (int)oversize);
    return 11;
}

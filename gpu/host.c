/* SPDX-License-Identifier: MIT
 * host.c - what the threads that launch are doing, looked at every 10 ms by our own thread: running, waiting in a
 * system call, or asleep. It tells why a GPU had nothing to do while no CUDA call was under way. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "gpu/gpu.h"

enum { THREADS = 8 };
static uint32_t threads[THREADS];

/* What the kernel says of a thread, without the end of the line; false: it is gone, or may not be looked at. */
static bool read_of(uint32_t thread, const char *what, char text[64])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%u/%s", thread, what);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, 63) : -1;
    if (fd >= 0) close(fd);
    if (n <= 0) return false;
    text[n] = 0;
    text[strcspn(text, "\n")] = 0;
    return true;
}

static void put_name(struct book *b, uint32_t thread)
{
    char name[64];
    struct gpu_record r = {.kind = GPU_THREAD, .text = name};
    if (!read_of(thread, "comm", name)) return;
    r.THREAD.thread = thread;
    r.text_bytes = strlen(name);
    book_put(b, &r);
}

void host_watch(struct book *b, uint32_t thread)
{
    for (int i = 0; i < THREADS; i++) {
        if (threads[i] == thread) return;
        if (threads[i]) continue;
        threads[i] = thread;
        put_name(b, thread);
        return;
    }
}

/* "running", or the number of the system call it is in. */
static bool look_at(uint32_t thread, uint64_t *state)
{
    char text[64];
    if (!read_of(thread, "syscall", text)) return false;
    *state = GPU_HOST_RUNS;
    if (strncmp(text, "running", 7) == 0) return true;
    long call = strtol(text, NULL, 10);
    *state = call == SYS_clock_nanosleep || call == SYS_nanosleep ? GPU_HOST_SLEEPS : GPU_HOST_WAITS;
    return true;
}

/* A thread that is gone makes room for another. */
static void forget_thread(int at)
{
    int last = at;
    while (last + 1 < THREADS && threads[last + 1]) last++;
    threads[at] = threads[last];
    threads[last] = 0;
}

void host_forget(void)
{
    memset(threads, 0, sizeof threads);
}

void host_look(struct book *b)
{
    for (int i = 0; i < THREADS && threads[i];) {
        struct gpu_record r = {.kind = GPU_HOST_STATE};
        if (!look_at(threads[i], &r.HOST_STATE.state)) {
            forget_thread(i);
            continue;
        }
        r.HOST_STATE.at = book_stamp(b, clock_unix_ns()); /* CUPTI's clock */
        r.HOST_STATE.thread = threads[i++];
        book_put(b, &r);
    }
}

/* SPDX-License-Identifier: MIT
 * process.c - who we are, and who is still alive: from /proc by plain reads, no allocation. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "trace/recorder.h"

static ssize_t read_whole(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    size_t have = 0;
    ssize_t n;
    while (have < size - 1 && ((n = read(fd, out + have, size - 1 - have)) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0) have += (size_t)n;
    close(fd);
    out[have] = 0;
    return (ssize_t)have;
}

uint32_t process_tid(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

uint64_t process_start_time(uint32_t pid)
{
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    if (read_whole(path, text, sizeof text) <= 0) return 0;
    char *p = strrchr(text, ')'); /* the name before it may hold anything */
    if (!p || p[1] != ' ' || p[2] == 'Z' || p[2] == 'X') return 0;
    p += 2;
    for (int field = 3; field < 22; field++) {
        p = strchr(p, ' ');
        if (!p) return 0;
        p++;
    }
    return strtoull(p, NULL, 10);
}

void process_command(char *out, size_t size, uint32_t pid)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    ssize_t n = read_whole(pid ? path : "/proc/self/cmdline", out, size);
    if (n < 0) n = 0;
    while (n > 0 && !out[n - 1]) n--;
    for (ssize_t i = 0; i < n; i++)
        if (!out[i]) out[i] = ' ';
    out[n] = 0;
}

bool process_thread_name(uint32_t tid, char out[16])
{
    char path[40], text[24];
    memset(out, 0, 16);
    if (tid == process_tid())
        return prctl(PR_GET_NAME, out, 0, 0, 0) == 0; /* no descriptor that others could see */
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", tid);
    ssize_t n = read_whole(path, text, sizeof text);
    if (n > 0 && text[n - 1] == '\n') n--;
    if (n > 0) memcpy(out, text, n < 15 ? (size_t)n : 15);
    return n > 0;
}

uint64_t process_random(void)
{
    uint64_t v = 0;
    if (getrandom(&v, sizeof v, GRND_NONBLOCK) != sizeof v)
        v = clock_raw_ns() * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)getpid() << 32;
    return v ? v : 1;
}

void *process_memory(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Without descriptors, which the program would see: /proc/self is the main thread, which has no program file
 * once it ended, and the folder of threads has one link for each that is not reaped. */
bool process_last_thread(void)
{
    struct stat st;
    char c;
    return stat("/proc/self/task", &st) == 0 && st.st_nlink == 2 + 2 &&
           readlink("/proc/self/exe", &c, 1) < 0 && errno == ENOENT;
}

/* A program counts on open() giving the lowest number, and one started with stdout closed must not print here. */
int process_fd(int fd)
{
    struct rlimit limit = {.rlim_cur = 256};
    getrlimit(RLIMIT_NOFILE, &limit);
    int high = limit.rlim_cur < 1024 ? (int)(limit.rlim_cur * 3 / 4) : 960;
    int moved = high > 3 ? fcntl(fd, F_DUPFD_CLOEXEC, high) : -1;
    if (moved < 0) moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int saved = errno;
    close(fd);
    errno = saved;
    return moved;
}

bool own_file_take(struct own_file *f, int fd)
{
    struct stat st;
    f->fd = fd;
    if (fstat(fd, &st) < 0) return false;
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    return true;
}

bool own_file_is_open(const struct own_file *f)
{
    struct stat st;
    return fstat(f->fd, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino;
}

bool own_file_reach(struct own_file *f, const char *path, int how)
{
    if (own_file_is_open(f)) return true;
    int fd = open(path, how | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) fd = process_fd(fd);
    if (fd < 0) return false;
    f->fd = fd; /* the old number is not ours to close */
    if (own_file_is_open(f)) return true;
    close(fd);
    f->fd = -1;
    return false;
}

void own_file_close(struct own_file *f)
{
    if (f->fd >= 0 && own_file_is_open(f)) close(f->fd);
    f->fd = -1;
}

static bool xfsz_pending(void)
{
    sigset_t set;
    return sigpending(&set) == 0 && sigismember(&set, SIGXFSZ) == 1;
}

void process_quiet(struct quiet *q)
{
    sigset_t xfsz;
    sigemptyset(&xfsz);
    sigaddset(&xfsz, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &xfsz, &q->before);
    q->was_pending = xfsz_pending();
}

void process_unquiet(const struct quiet *q)
{
    int saved = errno;
    sigset_t xfsz;
    sigemptyset(&xfsz);
    sigaddset(&xfsz, SIGXFSZ);
    if (!q->was_pending && xfsz_pending()) sigtimedwait(&xfsz, NULL, &(struct timespec){0, 0});
    pthread_sigmask(SIG_SETMASK, &q->before, NULL);
    errno = saved;
}

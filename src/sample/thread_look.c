/* SPDX-License-Identifier: MIT
 * thread_look.c - what a thread does now: /proc/PID/task/TID/stat and syscall. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/procfs.h"
#include "sample/peek.h"
#include "sample/thread_look.h"

/* ---- system calls that wait ---- */

struct waiting_call {
    long number;
    const char *name;
    enum stack_doing doing;
    bool has_fd;  /* its first argument is a descriptor */
    bool goes_on; /* interrupted without a signal it waits on, and the program sees nothing of it */
};
/* clang-format off */
static const struct waiting_call calls[] = {
    {SYS_futex, "futex", STACK_WAITS_LOCK, false, true},
    {SYS_nanosleep, "nanosleep", STACK_SLEEPS, false, true},
    {SYS_clock_nanosleep, "clock_nanosleep", STACK_SLEEPS, false, true},
    {SYS_read, "read", STACK_WAITS_IO, true, false},
    {SYS_write, "write", STACK_WAITS_IO, true, false},
    {SYS_readv, "readv", STACK_WAITS_IO, true, false},
    {SYS_writev, "writev", STACK_WAITS_IO, true, false},
    {SYS_pread64, "pread64", STACK_WAITS_IO, true, false},
    {SYS_pwrite64, "pwrite64", STACK_WAITS_IO, true, false},
    {SYS_fsync, "fsync", STACK_WAITS_IO, true, false},
    {SYS_fdatasync, "fdatasync", STACK_WAITS_IO, true, false},
    {SYS_flock, "flock", STACK_WAITS_LOCK, true, true},
    {SYS_accept, "accept", STACK_WAITS_NETWORK, true, false},
    {SYS_accept4, "accept4", STACK_WAITS_NETWORK, true, false},
    {SYS_connect, "connect", STACK_WAITS_NETWORK, true, false},
    {SYS_recvfrom, "recvfrom", STACK_WAITS_NETWORK, true, false},
    {SYS_recvmsg, "recvmsg", STACK_WAITS_NETWORK, true, false},
    {SYS_sendto, "sendto", STACK_WAITS_NETWORK, true, false},
    {SYS_sendmsg, "sendmsg", STACK_WAITS_NETWORK, true, false},
    {SYS_ppoll, "ppoll", STACK_WAITS_EVENTS, false, true},
    {SYS_pselect6, "pselect6", STACK_WAITS_EVENTS, false, true},
    {SYS_epoll_pwait, "epoll_pwait", STACK_WAITS_EVENTS, true, false},
#ifdef SYS_poll
    {SYS_poll, "poll", STACK_WAITS_EVENTS, false, true},
    {SYS_select, "select", STACK_WAITS_EVENTS, false, true},
    {SYS_epoll_wait, "epoll_wait", STACK_WAITS_EVENTS, true, false},
    {SYS_pause, "pause", STACK_WAITS_SIGNAL, false, true},
#endif
    {SYS_restart_syscall, "restart_syscall", STACK_WAITS, false, true},
    {SYS_wait4, "wait4", STACK_WAITS_CHILD, false, true},
    {SYS_waitid, "waitid", STACK_WAITS_CHILD, false, true},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait", STACK_WAITS_SIGNAL, false, false},
    {SYS_rt_sigsuspend, "rt_sigsuspend", STACK_WAITS_SIGNAL, false, false},
};
/* clang-format on */

static const struct waiting_call *call_of(int64_t number)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].number == number) return &calls[i];
    return NULL;
}

const char *thread_call_name(int64_t call)
{
    const struct waiting_call *c = call_of(call);
    return c ? c->name : "";
}

bool thread_call_again(int64_t call)
{
    return call == SYS_restart_syscall;
}

bool thread_call_goes_on(int64_t call)
{
    const struct waiting_call *c = call_of(call);
    return c && c->goes_on;
}

/* "202 0x7f.. 0x80 .. SP PC", "-1 SP PC" in no call, or "running". */
static void read_call(struct thread_look *t, pid_t pid, pid_t tid)
{
    char text[256];
    int fd = procfs_open("", "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
    if (fd < 0) return;
    ssize_t n = procfs_line(fd, text, sizeof text);
    procfs_close(&fd);
    char *rest = text;
    if (n <= 0 || (text[0] != '-' && (text[0] < '0' || text[0] > '9'))) return;
    t->call = strtoll(text, &rest, 10);
    for (unsigned i = 0; t->call >= 0 && i < 6 && *rest == ' '; i++) t->args[i] = strtoull(rest, &rest, 16);
    if (*rest == ' ') t->sp = strtoull(rest, &rest, 16);
    if (*rest == ' ') t->pc = strtoull(rest, &rest, 16);
    t->asked = true;
    const struct waiting_call *c = call_of(t->call);
    if (!c || (t->doing != STACK_WAITS && t->doing != STACK_WAITS_DISK)) return;
    if (t->doing == STACK_WAITS) t->doing = c->doing;
    if (c->has_fd && t->args[0] <= INT32_MAX) t->fd = (int32_t)t->args[0];
}

static enum stack_doing doing_of(char state)
{
    switch (state) {
    case 'R': return STACK_RUNS;
    case 'D': return STACK_WAITS_DISK;
    case 'T':
    case 't': return STACK_STOPPED;
    case 'Z':
    case 'X': return STACK_ENDED;
    default: return STACK_WAITS;
    }
}

bool thread_look(struct thread_look *out, pid_t pid, pid_t tid)
{
    char text[1024];
    struct process_stat stat;
    *out = (struct thread_look){.call = -1, .fd = -1};
    int fd = procfs_open("", "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    if (fd < 0) return false;
    ssize_t n = procfs_line(fd, text, sizeof text);
    procfs_close(&fd);
    if (n <= 0 || !process_stat_parse(&stat, text)) return false;
    procfs_label(out->name, sizeof out->name, stat.name, stat.name_len);
    out->doing = doing_of(stat.state);
    if (out->doing == STACK_WAITS || out->doing == STACK_WAITS_DISK || out->doing == STACK_STOPPED)
        read_call(out, pid, tid);
    return true;
}

/* ---- descriptors ---- */

/* "0100007F:1F90": words of the machine's order, then the port. */
static bool put_address(const char *hex, bool six, char *out, size_t size)
{
    uint32_t words[4] = {0};
    char digits[9] = "", host[INET6_ADDRSTRLEN] = "";
    size_t n = six ? 4 : 1;
    if (strspn(hex, "0123456789ABCDEFabcdef") != n * 8 || hex[n * 8] != ':') return false;
    for (size_t i = 0; i < n; i++) {
        memcpy(digits, hex + i * 8, 8);
        words[i] = (uint32_t)strtoul(digits, NULL, 16);
    }
    unsigned long port = strtoul(hex + n * 8 + 1, NULL, 16);
    inet_ntop(six ? AF_INET6 : AF_INET, words, host, sizeof host);
    if (port == 0)
        snprintf(out, size, "socket that listens");
    else
        snprintf(out, size, six ? "socket to [%s]:%lu" : "socket to %s:%lu", host, port);
    return true;
}

/* A line: "  0: local:port remote:port st tx:rx tr:when retr uid timeout inode ..". */
static bool find_peer(pid_t pid, const char *table, uint64_t inode, char *out, size_t size)
{
    char path[64], line[512];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/net/%s", (int)pid, table);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    for (unsigned n = 0; !found && n < 100000 && fgets(line, sizeof line, f); n++) {
        char *words[10] = {NULL}, *rest = NULL;
        size_t k = 0;
        for (char *w = strtok_r(line, " \n", &rest); w && k < 10; w = strtok_r(NULL, " \n", &rest))
            words[k++] = w;
        if (k == 10 && strtoull(words[9], NULL, 10) == inode)
            found = put_address(words[2], strcmp(table, "tcp6") == 0, out, size);
    }
    fclose(f);
    return found;
}

void thread_fd_target(pid_t pid, int32_t fd, char *out, size_t size)
{
    char path[64], target[256];
    uint64_t inode;
    out[0] = 0;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, (int)fd);
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n <= 0) return;
    target[n] = 0;
    if (strncmp(target, "socket:[", 8) == 0) {
        inode = strtoull(target + 8, NULL, 10);
        if (!find_peer(pid, "tcp", inode, out, size) && !find_peer(pid, "tcp6", inode, out, size))
            snprintf(out, size, "socket");
        return;
    }
    if (strncmp(target, "pipe:", 5) == 0)
        snprintf(out, size, "pipe");
    else
        procfs_label(out, size, target, strlen(target));
}

/* ---- all of them ---- */

static int by_number(const void *a, const void *b)
{
    const pid_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

tare_status thread_ids_read(struct thread_ids *t, pid_t pid, tare_error *err)
{
    char path[64];
    tare_status s = TARE_OK;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    vec_clear(&t->items);
    if (!d) return peek_explain(pid, errno == ENOENT ? ESRCH : errno, err);
    for (struct dirent *e; s == TARE_OK && (e = readdir(d));) {
        long tid = strtol(e->d_name, NULL, 10);
        if (tid > 0 && tid <= INT32_MAX) s = vec_push(&t->items, (pid_t)tid, err);
    }
    closedir(d);
    if (t->items.n > 1) qsort(t->items.items, t->items.n, sizeof t->items.items[0], by_number);
    return s;
}

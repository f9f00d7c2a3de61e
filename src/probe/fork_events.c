/* SPDX-License-Identifier: MIT
 * fork_events.c - see process_tree.h. Never blocks. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "probe/process_tree.h"

enum { QUEUE_BYTES = 8 << 20, AT_ONCE = 32, MESSAGE_BYTES = 256 };

static bool subscribe(int fd)
{
    struct sockaddr_nl us = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
    enum proc_cn_mcast_op op = PROC_CN_MCAST_LISTEN;
    enum { BYTES = NLMSG_LENGTH(sizeof(struct cn_msg) + sizeof op) };
    struct nlmsghdr head = {.nlmsg_len = BYTES, .nlmsg_type = NLMSG_DONE};
    struct cn_msg message = {.id = {CN_IDX_PROC, CN_VAL_PROC}, .len = sizeof op};
    char wish[BYTES];
    int room = QUEUE_BYTES;
    memcpy(wish, &head, sizeof head);
    memcpy(wish + NLMSG_HDRLEN, &message, sizeof message);
    memcpy(wish + NLMSG_HDRLEN + sizeof message, &op, sizeof op);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) < 0 && errno != EPERM) return false;
    return bind(fd, (struct sockaddr *)&us, sizeof us) == 0 && send(fd, wish, sizeof wish, 0) == BYTES;
}

/* A kernel that does not answer to us (another namespace) takes the wish and stays silent: its answer must be there. */
static bool acknowledged(int fd)
{
    char answer[256];
    return recv(fd, answer, sizeof answer, 0) >= (ssize_t)(sizeof(struct nlmsghdr) + sizeof(struct cn_msg));
}

/* The kernel tells of all that any process does. Starts and ends of processes, not of threads, are wanted: the rest is
 * dropped before it costs us a call. A thread is what has a number other than its process's. Words are compared as they
 * lie, hence htonl. Without the filter it is only dearer. */
static void want_processes_only(int fd)
{
    enum {
        WHAT = NLMSG_HDRLEN + sizeof(struct cn_msg),
        ENDED = WHAT + offsetof(struct proc_event, event_data.exit.process_pid),
        STARTED = WHAT + offsetof(struct proc_event, event_data.fork.child_pid),
        NEXT = sizeof(__kernel_pid_t) /* its process, after the pid itself in both */
    };
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, WHAT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_EXIT), 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ENDED),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ENDED + NEXT),
        BPF_STMT(BPF_JMP | BPF_JA, 4), /* to the comparison */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_FORK), 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, STARTED),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, STARTED + NEXT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

void fork_events_open(struct fork_events *f, const char **why)
{
    *f = (struct fork_events){.fd = -1};
    f->fd = socket(PF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
    if (f->fd >= 0 && subscribe(f->fd) && acknowledged(f->fd)) {
        want_processes_only(f->fd);
        f->gap = true; /* what began before this */
        return;
    }
    *why = "the kernel tells starts and ends of processes to root only";
    fork_events_close(f);
}

void fork_events_close(struct fork_events *f)
{
    if (f->fd >= 0) close(f->fd);
    f->fd = -1;
    map_u64_release(&f->alive);
    vec_release(&f->fresh);
    vec_release(&f->ended);
}

enum { ALIVE = 1, ENDED = 2 };

tare_status fork_events_know(struct fork_events *f, pid_t pid, tare_error *err)
{
    if (f->fd < 0 || map_u64_find(&f->alive, (uint64_t)pid)) return TARE_OK;
    f->started++;
    return map_u64_put(&f->alive, (uint64_t)pid, ALIVE, err);
}

/* A process that is told of as ended may be seen as a running one for a while: known as ended, it is not taken for a
 * new one. */
static tare_status know_ended(struct fork_events *f, pid_t pid, tare_error *err)
{
    uint64_t *known = map_u64_find(&f->alive, (uint64_t)pid);
    if (!known || *known == ENDED) return TARE_OK;
    *known = ENDED;
    return vec_push(&f->ended, pid, err);
}

/* A number that is given again is a new process, even before the old one was forgotten. */
static tare_status know_started(struct fork_events *f, pid_t pid, tare_error *err)
{
    const uint64_t *known = map_u64_find(&f->alive, (uint64_t)pid);
    if (known && *known == ENDED) map_u64_remove(&f->alive, (uint64_t)pid, NULL);
    tare_status s = vec_push(&f->fresh, pid, err);
    return s == TARE_OK ? fork_events_know(f, pid, err) : s;
}

void fork_events_forget(struct fork_events *f, const struct process_tree *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->ended.n; i++) {
        pid_t pid = f->ended.items[i];
        const uint64_t *known = map_u64_find(&f->alive, (uint64_t)pid);
        if (!known || *known != ENDED) continue; /* its number is another's */
        if (map_u64_find(&t->index, (uint64_t)pid))
            f->ended.items[kept++] = pid;
        else
            map_u64_remove(&f->alive, (uint64_t)pid, NULL);
    }
    f->ended.n = kept;
}

static tare_status take_event(struct fork_events *f, const struct proc_event *e, tare_error *err)
{
    if (e->what == PROC_EVENT_FORK) {
        bool process = e->event_data.fork.child_pid == e->event_data.fork.child_tgid;
        if (!process || !map_u64_find(&f->alive, (uint64_t)e->event_data.fork.parent_tgid)) return TARE_OK;
        return know_started(f, e->event_data.fork.child_tgid, err);
    } else if (e->what == PROC_EVENT_EXIT &&
               e->event_data.exit.process_pid == e->event_data.exit.process_tgid) {
        return know_ended(f, e->event_data.exit.process_tgid, err);
    }
    return TARE_OK;
}

static tare_status take_message(struct fork_events *f, const char *bytes, size_t n, tare_error *err)
{
    struct proc_event e;
    size_t at = NLMSG_LENGTH(offsetof(struct cn_msg, data));
    if (n < at + 16) return TARE_OK;
    memset(&e, 0, sizeof e);
    memcpy(&e, bytes + at, n - at < sizeof e ? n - at : sizeof e);
    return take_event(f, &e, err);
}

/* Until a read is not full. ENOBUFS is not an end: some were lost, and the rest is still there. */
tare_status fork_events_drain(struct fork_events *f, tare_error *err)
{
    char bytes[AT_ONCE][MESSAGE_BYTES];
    struct iovec parts[AT_ONCE];
    struct mmsghdr messages[AT_ONCE];
    tare_status s = TARE_OK;
    vec_clear(&f->fresh);
    for (int n = AT_ONCE; f->fd >= 0 && s == TARE_OK && n == AT_ONCE;) {
        for (int i = 0; i < AT_ONCE; i++) {
            parts[i] = (struct iovec){bytes[i], sizeof bytes[i]};
            messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &parts[i], .msg_iovlen = 1}};
        }
        n = recvmmsg(f->fd, messages, AT_ONCE, 0, NULL);
        for (int i = 0; i < n && s == TARE_OK; i++) s = take_message(f, bytes[i], messages[i].msg_len, err);
        f->gap |= n < 0 && errno == ENOBUFS;
        if (n < 0 && (errno == EINTR || errno == ENOBUFS)) n = AT_ONCE;
    }
    return s;
}

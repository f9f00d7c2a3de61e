/* SPDX-License-Identifier: MIT
 * fork_events.c - see fork_events.h. Never blocks. */
#include "probe/fork_events.h"

#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { QUEUE_BYTES = 8 << 20 };

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

void fork_events_open(struct fork_events *f, const char **why)
{
    *f = (struct fork_events){.fd = -1};
    f->fd = socket(PF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
    if (f->fd >= 0 && subscribe(f->fd) && acknowledged(f->fd)) return;
    *why = "the kernel tells starts and ends of processes to root only";
    fork_events_close(f);
}

void fork_events_close(struct fork_events *f)
{
    if (f->fd >= 0) close(f->fd);
    f->fd = -1;
    map_u64_release(&f->alive);
}

tare_status fork_events_know(struct fork_events *f, pid_t pid, tare_error *err)
{
    if (f->fd < 0 || map_u64_find(&f->alive, (uint64_t)pid)) return TARE_OK;
    f->started++;
    return map_u64_put(&f->alive, (uint64_t)pid, 1, err);
}

static tare_status take(struct fork_events *f, const struct proc_event *e, tare_error *err)
{
    if (e->what == PROC_EVENT_FORK) {
        uint64_t child = (uint64_t)e->event_data.fork.child_tgid;
        bool process = e->event_data.fork.child_pid == e->event_data.fork.child_tgid;
        if (process && map_u64_find(&f->alive, (uint64_t)e->event_data.fork.parent_tgid))
            return fork_events_know(f, (pid_t)child, err);
    } else if (e->what == PROC_EVENT_EXIT &&
               e->event_data.exit.process_pid == e->event_data.exit.process_tgid) {
        map_u64_remove(&f->alive, (uint64_t)e->event_data.exit.process_tgid, NULL);
    }
    return TARE_OK;
}

tare_status fork_events_drain(struct fork_events *f, tare_error *err)
{
    union {
        struct nlmsghdr head;
        char bytes[1024];
    } m;
    tare_status s = TARE_OK;
    while (f->fd >= 0 && s == TARE_OK) {
        ssize_t n = recv(f->fd, &m, sizeof m, 0);
        if (n < 0 && (errno == EINTR || errno == ENOBUFS)) continue; /* ENOBUFS: some were lost */
        if (n < 0) break;
        struct proc_event e;
        size_t at = NLMSG_LENGTH(offsetof(struct cn_msg, data));
        if ((size_t)n < at + 16) continue;
        memset(&e, 0, sizeof e);
        memcpy(&e, m.bytes + at, (size_t)n - at < sizeof e ? (size_t)n - at : sizeof e);
        s = take(f, &e, err);
    }
    return s;
}

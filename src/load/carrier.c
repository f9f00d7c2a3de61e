/* SPDX-License-Identifier: MIT
 * carrier.c - see carrier.h. */
#include "load/carrier.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tls/tls.h"

static const struct {
    int error;
    enum load_fault fault;
} faults[] = {
    {ECONNREFUSED, LOAD_REFUSED}, {ECONNRESET, LOAD_RESET},      {EPIPE, LOAD_RESET},
    {EMFILE, LOAD_SOCKETS},       {ENFILE, LOAD_SOCKETS},        {ENOBUFS, LOAD_SOCKETS},
    {ENOMEM, LOAD_SOCKETS},       {EADDRNOTAVAIL, LOAD_SOCKETS},
};

static enum load_fault broken(struct carrier *c, int error)
{
    snprintf(c->why, sizeof c->why, "%s", strerror(error));
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (faults[i].error == error) return faults[i].fault;
    return c->state == CARRIER_OPEN ? LOAD_RESET : LOAD_UNREACHABLE;
}

static bool is_later(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* ---- dialling ---- */

enum load_fault carrier_dial(struct carrier *c, const struct load_address *to)
{
    const struct sockaddr *at = (const struct sockaddr *)&to->at[to->use];
    int one = 1;
    c->state = CARRIER_CLOSED;
    c->used = c->waits_to_send = false;
    c->fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0) return broken(c, errno);
    if (!to->is_unix) setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(c->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one); /* where it cannot, our clock counts */
    if (connect(c->fd, at, to->size[to->use]) == 0 || errno == EINPROGRESS || errno == EINTR) {
        c->state = CARRIER_DIALS;
        return LOAD_NONE;
    }
    enum load_fault fault = broken(c, errno);
    carrier_close(c);
    return fault;
}

enum load_fault carrier_dialled(struct carrier *c, const struct load_address *to, struct tls_context *trust)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) error = errno;
    if (error) return broken(c, error);
    if (!trust) {
        c->state = CARRIER_OPEN;
        return LOAD_NONE;
    }
    c->tls = tls_open(trust, c->fd, to->host);
    if (!c->tls) return broken(c, ENOMEM);
    c->state = CARRIER_SHAKES;
    return carrier_shake(c);
}

static void explain_tls(struct carrier *c)
{
    tare_error err = TARE_ERROR_INIT;
    tls_why(c->tls, &err);
    snprintf(c->why, sizeof c->why, "%.190s", err.text);
}

enum load_fault carrier_shake(struct carrier *c)
{
    int n = tls_shake(c->tls);
    c->waits_to_send = n == TLS_WRITES;
    if (n == TLS_READS || n == TLS_WRITES) return LOAD_OPEN;
    if (n == 1) {
        c->state = CARRIER_OPEN;
        return LOAD_NONE;
    }
    if (n == TLS_ENDED)
        snprintf(c->why, sizeof c->why, "it ended while hands were shaken");
    else
        explain_tls(c);
    return LOAD_TLS;
}

/* ---- bytes ---- */

static long tls_result(struct carrier *c, long n, enum load_fault *fault)
{
    if (n > 0) return n;
    if (n == TLS_READS || n == TLS_WRITES) return CARRIER_LATER;
    if (n == TLS_ENDED) return CARRIER_ENDED;
    explain_tls(c);
    *fault = LOAD_RESET;
    return CARRIER_BROKEN;
}

long carrier_send(struct carrier *c, enum load_fault *fault)
{
    const char *at = c->text + c->sent;
    size_t left = c->n - c->sent;
    long n = 0;
    if (c->tls) {
        n = tls_result(c, tls_send(c->tls, at, left), fault);
    } else {
        n = (long)send(c->fd, at, left, MSG_NOSIGNAL);
        if (n < 0) {
            bool later = is_later(errno);
            if (!later) *fault = broken(c, errno);
            n = later ? CARRIER_LATER : CARRIER_BROKEN;
        }
    }
    if (n > 0) c->sent += (size_t)n;
    return n;
}

static uint64_t stamp_of(struct msghdr *m)
{
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        struct timespec t;
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_TIMESTAMPNS) continue;
        memcpy(&t, CMSG_DATA(h), sizeof t);
        return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
    }
    return 0;
}

static long receive_plain(struct carrier *c, struct carrier_bytes *b, enum load_fault *fault)
{
    union {
        char bytes[CMSG_SPACE(sizeof(struct timespec)) + 64];
        struct cmsghdr align;
    } control;
    struct iovec into = {b->room, b->size};
    struct msghdr m = {.msg_iov = &into,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(c->fd, &m, 0);
    if (n == 0) return CARRIER_ENDED;
    if (n > 0) {
        b->unix_ns = stamp_of(&m);
        return (long)n;
    }
    if (is_later(errno)) return CARRIER_LATER;
    *fault = broken(c, errno);
    return CARRIER_BROKEN;
}

/* Of TLS a read may be many of the kernel's: its clock says nothing of one of them. */
long carrier_receive(struct carrier *c, struct carrier_bytes *b, enum load_fault *fault)
{
    b->unix_ns = 0;
    return c->tls ? tls_result(c, tls_receive(c->tls, b->room, b->size), fault) : receive_plain(c, b, fault);
}

void carrier_close(struct carrier *c)
{
    if (c->tls) {
        tls_end(c->tls);
        tls_close(c->tls);
    }
    if (c->fd >= 0) close(c->fd);
    c->tls = NULL;
    c->fd = -1;
    c->state = CARRIER_CLOSED;
}

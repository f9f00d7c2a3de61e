/* SPDX-License-Identifier: MIT
 * wire.c - sockets that never block, and TLS over them. */
#include "client/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "tls/tls.h"

/* ---- waiting ---- */

static int left_ms(uint64_t until_ns)
{
    uint64_t now = instant_now().ns;
    return now >= until_ns ? 0 : (int)((until_ns - now) / 1000000 + 1);
}

static bool wait_for(int fd, short events, uint64_t until_ns)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        int ms = left_ms(until_ns);
        int n = ms > 0 ? poll(&p, 1, ms) : 0;
        if (n > 0) return true;
        if (ms <= 0) return false;
    }
}

bool wire_wait(struct wire *w, bool sending, uint64_t until_ns)
{
    return wait_for(w->fd, (short)(sending ? POLLIN | POLLOUT : POLLIN), until_ns);
}

bool wire_is_stale(struct wire *w)
{
    struct pollfd p = {.fd = w->fd, .events = POLLIN};
    return poll(&p, 1, 0) != 0;
}

/* ---- plain ---- */

static bool is_later(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static tare_status too_late(tare_error *err)
{
    return error_set(err, TARE_IO, "no answer in time");
}

static tare_status connect_one(int fd, const struct addrinfo *a, uint64_t until_ns, tare_error *err)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) return TARE_OK;
    if (errno != EINPROGRESS && errno != EINTR) return error_set(err, TARE_IO, "%s", strerror(errno));
    if (!wait_for(fd, POLLOUT, until_ns)) return too_late(err);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) error = errno;
    return error ? error_set(err, TARE_IO, "%s", strerror(error)) : TARE_OK;
}

/* Each address in turn; where none answers, the last one's cause is told. The system's resolver has its own times. */
static tare_status connect_any(struct wire *w, const struct wire_place *to, uint64_t until_ns,
                               tare_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *all = NULL;
    int rc = getaddrinfo(to->host, to->port, &hints, &all), one = 1;
    if (rc) return error_set(err, TARE_IO, "%s", rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
    tare_status s = error_set(err, TARE_IO, "it has no address");
    for (const struct addrinfo *a = all; a && w->fd < 0; a = a->ai_next) {
        int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
        s = fd < 0 ? error_set(err, TARE_IO, "%s", strerror(errno)) : connect_one(fd, a, until_ns, err);
        if (s == TARE_OK)
            w->fd = fd;
        else if (fd >= 0)
            close(fd);
    }
    freeaddrinfo(all);
    if (s == TARE_OK) setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return s;
}

static long plain_result(ssize_t n, bool end_is_zero, tare_error *err)
{
    if (n > 0) return n;
    if (n == 0) return end_is_zero ? WIRE_ENDED : 0;
    if (is_later(errno)) return 0;
    error_set(err, TARE_IO, "%s", strerror(errno));
    return WIRE_BROKEN;
}

/* ---- TLS ---- */

static tare_status shake_hands(struct wire *w, uint64_t until_ns, tare_error *err)
{
    for (;;) {
        int rc = tls_shake(w->tls);
        if (rc == 1) return TARE_OK;
        if (rc == TLS_ENDED || rc == TLS_BROKEN) return tls_why(w->tls, err);
        if (!wait_for(w->fd, rc == TLS_WRITES ? POLLOUT : POLLIN, until_ns)) return too_late(err);
    }
}

/* The connection keeps what it needs of whom to trust. */
static tare_status open_tls(struct wire *w, const struct wire_place *to, uint64_t until_ns, tare_error *err)
{
    struct tls_context *trust = NULL;
    tare_status s = tls_trust(&trust, secure_getenv("TARE_CA_FILE"), err);
    if (s != TARE_OK) return s;
    w->tls = tls_open(trust, w->fd, to->host);
    tls_release(trust);
    return w->tls ? shake_hands(w, until_ns, err) : error_nomem(err, "TLS");
}

static long tls_result(struct wire *w, long n, tare_error *err)
{
    if (n > 0) return n;
    if (n == TLS_ENDED) return WIRE_ENDED;
    if (n != TLS_BROKEN) return 0;
    tls_why(w->tls, err);
    return WIRE_BROKEN;
}

/* ---- both ---- */

tare_status wire_open(struct wire *w, const struct wire_place *to, uint64_t until_ns, tare_error *err)
{
    tare_status s = connect_any(w, to, until_ns, err);
    if (s == TARE_OK && to->tls) s = open_tls(w, to, until_ns, err);
    if (s != TARE_OK) wire_close(w);
    return s;
}

void wire_close(struct wire *w)
{
    if (w->tls) tls_end(w->tls);
    tls_close(w->tls);
    w->tls = NULL;
    if (w->fd >= 0) close(w->fd);
    w->fd = -1;
}

long wire_send(struct wire *w, const void *bytes, size_t n, tare_error *err)
{
    if (w->tls) return tls_result(w, tls_send(w->tls, bytes, n), err);
    return plain_result(send(w->fd, bytes, n, MSG_NOSIGNAL), false, err);
}

long wire_receive(struct wire *w, void *bytes, size_t n, tare_error *err)
{
    if (w->tls) return tls_result(w, tls_receive(w->tls, bytes, n), err);
    return plain_result(recv(w->fd, bytes, n, 0), true, err);
}

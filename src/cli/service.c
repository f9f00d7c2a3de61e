/* SPDX-License-Identifier: MIT
 * service.c - LISTEN_FDS and NOTIFY_SOCKET (sd_listen_fds(3), sd_notify(3)) without a library. */
#include "cli/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_FD = 3 };

/* The number that a variable is; -1: none. */
static long number_of(const char *name)
{
    const char *text = secure_getenv(name);
    char *end;
    if (!text || *text < '0' || *text > '9') return -1;
    errno = 0;
    long v = strtol(text, &end, 10);
    return *end || errno ? -1 : v;
}

static tare_status take_listener(struct service *s, tare_error *err)
{
    int type = 0, listens = 0;
    socklen_t size = sizeof type, n = sizeof s->at;
    bool known = getsockopt(FIRST_FD, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
                 getsockopt(FIRST_FD, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 &&
                 getsockname(FIRST_FD, (struct sockaddr *)&s->at, &n) == 0;
    bool ours = s->at.ss_family == AF_INET || s->at.ss_family == AF_INET6;
    if (!known || !ours || type != SOCK_STREAM || !listens)
        return error_set(
            err, TARE_INVALID,
            "LISTEN_FDS: descriptor %d is no TCP socket that listens (ListenStream=ADDRESS:PORT)", FIRST_FD);
    int flags = fcntl(FIRST_FD, F_GETFL);
    if (flags < 0 || fcntl(FIRST_FD, F_SETFL, flags | O_NONBLOCK) < 0 ||
        fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC) < 0)
        return error_errno(err, "LISTEN_FDS: descriptor %d cannot be used", FIRST_FD);
    s->listener = FIRST_FD;
    return TARE_OK;
}

/* A path, or @name in the abstract space. */
static tare_status take_manager(struct service *s, tare_error *err)
{
    const char *where = secure_getenv("NOTIFY_SOCKET");
    size_t n = where ? strlen(where) : 0;
    if (!n) return TARE_OK;
    if ((where[0] != '/' && where[0] != '@') || n >= sizeof s->manager.sun_path)
        return error_set(err, TARE_INVALID, "NOTIFY_SOCKET=%.120s: is neither a path nor @name", where);
    s->manager.sun_family = AF_UNIX;
    memcpy(s->manager.sun_path, where, n);
    if (where[0] == '@') s->manager.sun_path[0] = 0;
    s->manager_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (where[0] == '/'));
    return TARE_OK;
}

tare_status service_begin(struct service *s, tare_error *err)
{
    static const char *const names[] = {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET"};
    *s = (struct service){.listener = 0};
    long n = number_of("LISTEN_PID") == (long)getpid() ? number_of("LISTEN_FDS") : 0;
    tare_status status = take_manager(s, err);
    if (status == TARE_OK && n > 1)
        status = error_set(err, TARE_INVALID, "LISTEN_FDS=%ld: tare serve takes one socket", n);
    if (status == TARE_OK && n == 1) status = take_listener(s, err);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    return status;
}

void service_tell(const struct service *s, const char *text)
{
    if (!s->manager_size) return;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&s->manager,
           s->manager_size);
    close(fd);
}

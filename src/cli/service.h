/* SPDX-License-Identifier: MIT
 * service.h - `tare serve` under a service manager, by the protocol of systemd: a listening socket that is there
 * already, and datagrams that say when it serves and when it ends. Without one nothing happens. */
#ifndef CLI_SERVICE_H
#define CLI_SERVICE_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/error.h"

struct service {
    int listener;               /* 0: none was given */
    struct sockaddr_storage at; /* where it listens */
    struct sockaddr_un manager; /* who is told */
    socklen_t manager_size;     /* 0: nobody */
};

/* What the environment says, which is then gone from it: children must not take it as theirs. TARE_INVALID: more than
 * one socket, or one that is none of TCP that listens. */
tare_status service_begin(struct service *s, tare_error *err);
/* "READY=1", "STOPPING=1". Who does not listen misses it. */
void service_tell(const struct service *s, const char *text);

#endif

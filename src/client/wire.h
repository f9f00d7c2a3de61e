/* SPDX-License-Identifier: MIT
 * wire.h - a connection to a server, plain or TLS: bytes go and come until a deadline, and nothing waits longer. Knows
 * nothing of HTTP. Private to src/client. */
#ifndef CLIENT_WIRE_H
#define CLIENT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

struct tls;
struct wire {
    int fd;          /* -1: closed */
    struct tls *tls; /* NULL: plain */
};
#define WIRE_INIT {.fd = -1}

struct wire_place {
    char host[256], port[6]; /* host without the brackets of IPv6 */
    bool tls;
};

/* Of TLS the certificate must be good, of this host, and of an issuer that the system trusts, or TARE_CA_FILE names.
 * `until_ns`: of instant_now(). Errors are the cause alone: "connection refused". */
tare_status wire_open(struct wire *w, const struct wire_place *to, uint64_t until_ns, tare_error *err);
void wire_close(struct wire *w);

/* As many bytes as go at once, or come; 0: wait for it. -1: the connection is broken, *err says why; -2: the other side
 * has ended it. Who receives has room for a record of TLS (16 KB): then nothing stays behind that wire_wait() would not
 * see. */
enum { WIRE_BROKEN = -1, WIRE_ENDED = -2 };
long wire_send(struct wire *w, const void *bytes, size_t n, tare_error *err);
long wire_receive(struct wire *w, void *bytes, size_t n, tare_error *err);

/* Until something came, or may be sent where `sending`. False: too late. */
bool wire_wait(struct wire *w, bool sending, uint64_t until_ns);

/* Whether it has something to read, or is at its end: no question may go out on it. */
bool wire_is_stale(struct wire *w);

#endif

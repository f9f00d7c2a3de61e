/* SPDX-License-Identifier: MIT
 * tls.h - TLS 1.2 and 1.3 over sockets that never block, by OpenSSL, for both ends; the one seam to libssl. No
 * renegotiation, no compression, no early data. A context is one server's certificate, or whom a client trusts; it may
 * be used by many threads, a connection by one. Processes that use it ignore SIGPIPE. */
#ifndef TLS_TLS_H
#define TLS_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

struct tls_context;
struct tls; /* one connection */

bool tls_available(void); /* false: built without libssl, and whatever opens a context says so */

/* A certificate with those that link it to its issuer, and its key, both PEM. The key must be its owner's alone (of
 * root also a group's), and the owner this user or root. TARE_INVALID: they cannot be used, and why. */
tare_status tls_serve(struct tls_context **out, const char *certificate, const char *key, tare_error *err);
/* Reads the files again: connections that come get what is in them. Where that fails all stays as it was. */
tare_status tls_renew(struct tls_context *c, const char *certificate, const char *key, tare_error *err);
/* What clients will not like about the certificate now; NULL: nothing. */
const char *tls_complaint(const struct tls_context *c);

/* Trusts those in the file `authorities` alone; NULL: the system's, or what SSL_CERT_FILE and SSL_CERT_DIR name. */
tare_status tls_trust(struct tls_context **out, const char *authorities, tare_error *err);

void tls_release(struct tls_context *c); /* NULL is fine; connections that are open go on */

/* The connection does not close `fd`. `host`: whose certificate the other side must have, a name or an address; NULL:
 * this side has the certificate. NULL: no memory. */
struct tls *tls_open(struct tls_context *c, int fd, const char *host);
void tls_close(struct tls *t); /* NULL is fine */

/* What a call gives beside a number of bytes. */
enum {
    TLS_READS = 0,   /* call again when there is something to read */
    TLS_WRITES = -1, /* call again when the socket takes bytes */
    TLS_ENDED = -2,  /* the other side has said that it is done */
    TLS_BROKEN = -3  /* tls_why() says why */
};
int tls_shake(struct tls *t); /* 1: hands are shaken */
long tls_receive(struct tls *t, void *bytes, size_t n);
long tls_send(struct tls *t, const void *bytes, size_t n);
void tls_end(struct tls *t); /* says that nothing more will be sent, where it can be said */
tare_status tls_why(struct tls *t,
                    tare_error *err); /* of the call before, by the same thread: the cause alone */

#endif

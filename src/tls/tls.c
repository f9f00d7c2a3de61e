/* SPDX-License-Identifier: MIT
 * tls.c - OpenSSL behind tls.h. */
#include "tls/tls.h"

#ifdef WITH_TLS

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/mem.h"

struct tls_context {
    SSL_CTX *ssl;
    pthread_mutex_t lock; /* tls_renew() against tls_open() */
};

struct tls {
    SSL *ssl;
    bool shaken, over; /* over: nothing more may be sent */
    int error, system; /* of the last call: SSL_get_error(), errno */
};

bool tls_available(void)
{
    return true;
}

/* ---- contexts ---- */

static const char *reason(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    return text ? text : "OpenSSL does not say why";
}

/* Records are read one by one (no read-ahead), so that what was not asked for stays in the socket, where epoll sees it.
 * Without AUTO_RETRY a call handles one message of the protocol itself and comes back: a flood of them costs its sender
 * turns like anything else. Buffers of idle connections are given back. */
static tare_status new_context(struct tls_context **out, const SSL_METHOD *method, tare_error *err)
{
    struct tls_context *c = mem_new(1, sizeof *c);
    ERR_clear_error();
    if (!c) return error_nomem(err, "TLS");
    pthread_mutex_init(&c->lock, NULL);
    c->ssl = SSL_CTX_new(method);
    if (!c->ssl || SSL_CTX_set_min_proto_version(c->ssl, TLS1_2_VERSION) != 1) {
        tls_release(c);
        return error_set(err, TARE_NOMEM, "TLS cannot begin: %s", reason());
    }
    SSL_CTX_clear_mode(c->ssl, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_mode(c->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                 SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(c->ssl,
                        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_session_cache_mode(c->ssl, SSL_SESS_CACHE_OFF); /* tickets need none */
    *out = c;
    return TARE_OK;
}

void tls_release(struct tls_context *c)
{
    if (!c) return;
    SSL_CTX_free(c->ssl);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

/* Who may read the key may be this server to everybody. */
static tare_status check_key_file(int fd, const char *key, tare_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(err, TARE_INVALID, "%s: is no file", key);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return error_set(err, TARE_INVALID, "%s: the key belongs to another user", key);
    mode_t others = st.st_uid == geteuid() ? S_IRWXG | S_IRWXO : S_IWGRP | S_IXGRP | S_IRWXO;
    if (st.st_mode & others)
        return error_set(err, TARE_INVALID, "%s: others may use the key (mode %03o): chmod 600 it", key,
                         (unsigned)(st.st_mode & 0777));
    return TARE_OK;
}

/* Instead of asking at the terminal. */
static int no_passphrase(char *out, int size, int writing, void *asked)
{
    (void)out, (void)size, (void)writing;
    *(bool *)asked = true;
    return -1;
}

static tare_status read_key(struct tls_context *c, const char *key, tare_error *err)
{
    bool asked = false;
    int fd = open(key, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return error_set(err, TARE_INVALID, "%s: %s", key, strerror(errno));
    tare_status s = check_key_file(fd, key, err);
    BIO *in = s == TARE_OK ? BIO_new_fd(fd, BIO_NOCLOSE) : NULL;
    EVP_PKEY *found = in ? PEM_read_bio_PrivateKey(in, NULL, no_passphrase, &asked) : NULL;
    if (s == TARE_OK && asked)
        s = error_set(err, TARE_INVALID, "%s: the key has a passphrase, and nobody is there to say it", key);
    else if (s == TARE_OK && !found)
        s = error_set(err, TARE_INVALID, "%s: holds no key in PEM: %s", key, reason());
    if (s == TARE_OK && SSL_CTX_use_PrivateKey(c->ssl, found) != 1)
        s = error_set(err, TARE_INVALID, "%s: is not the key of the certificate: %s", key, reason());
    EVP_PKEY_free(found);
    BIO_free(in);
    close(fd);
    return s;
}

static tare_status read_certificate(struct tls_context *c, const char *certificate, tare_error *err)
{
    if (access(certificate, R_OK) != 0)
        return error_set(err, TARE_INVALID, "%s: %s", certificate, strerror(errno));
    if (SSL_CTX_use_certificate_chain_file(c->ssl, certificate) != 1)
        return error_set(err, TARE_INVALID, "%s: holds no certificate in PEM: %s", certificate, reason());
    return TARE_OK;
}

/* RFC 7301: a list of names, each behind its length. */
static const unsigned char spoken[] = "\x08http/1.1";

/* What OpenSSL hands to a function that chooses. */
#define OFFER \
    SSL *ssl, const unsigned char **out, unsigned char *n, const unsigned char *offered, unsigned n_offered, void *ctx

/* A client that would speak h2 alone is told so by an alert, and not by bytes that it cannot read. */
static int choose_protocol(OFFER)
{
    (void)ssl, (void)ctx;
    for (unsigned at = 0; at < n_offered; at += 1U + offered[at]) {
        if (offered[at] != spoken[0] || at + spoken[0] >= n_offered) continue;
        if (memcmp(offered + at + 1, spoken + 1, spoken[0]) != 0) continue;
        *out = spoken + 1;
        *n = spoken[0];
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

tare_status tls_serve(struct tls_context **out, const char *certificate, const char *key, tare_error *err)
{
    struct tls_context *c = NULL;
    tare_status s = new_context(&c, TLS_server_method(), err);
    if (s != TARE_OK) return s;
    SSL_CTX_set_alpn_select_cb(c->ssl, choose_protocol, NULL);
    s = read_certificate(c, certificate, err);
    if (s == TARE_OK) s = read_key(c, key, err);
    if (s == TARE_OK && SSL_CTX_check_private_key(c->ssl) != 1)
        s = error_set(err, TARE_INVALID, "%s: is not the key of the certificate %s", key, certificate);
    if (s == TARE_OK)
        *out = c;
    else
        tls_release(c);
    return s;
}

tare_status tls_renew(struct tls_context *c, const char *certificate, const char *key, tare_error *err)
{
    struct tls_context *fresh = NULL;
    tare_status s = tls_serve(&fresh, certificate, key, err);
    if (s != TARE_OK) return s;
    pthread_mutex_lock(&c->lock);
    SSL_CTX *old = c->ssl;
    c->ssl = fresh->ssl;
    pthread_mutex_unlock(&c->lock);
    fresh->ssl = old; /* connections that are open hold it */
    tls_release(fresh);
    return TARE_OK;
}

const char *tls_complaint(const struct tls_context *c)
{
    const X509 *x = SSL_CTX_get0_certificate(c->ssl);
    if (X509_cmp_current_time(X509_get0_notAfter(x)) < 0) return "has expired";
    if (X509_cmp_current_time(X509_get0_notBefore(x)) > 0) return "is not valid yet";
    return NULL;
}

tare_status tls_trust(struct tls_context **out, const char *authorities, tare_error *err)
{
    struct tls_context *c = NULL;
    tare_status s = new_context(&c, TLS_client_method(), err);
    if (s != TARE_OK) return s;
    SSL_CTX_set_verify(c->ssl, SSL_VERIFY_PEER, NULL);
    if (authorities && access(authorities, R_OK) != 0)
        s = error_set(err, TARE_INVALID, "%s: %s", authorities, strerror(errno));
    else if (authorities && SSL_CTX_load_verify_file(c->ssl, authorities) != 1)
        s = error_set(err, TARE_INVALID, "%s: holds no certificates in PEM: %s", authorities, reason());
    else if (!authorities && SSL_CTX_set_default_verify_paths(c->ssl) != 1)
        s = error_set(err, TARE_IO, "whom to trust cannot be read: %s", reason());
    if (s == TARE_OK)
        *out = c;
    else
        tls_release(c);
    return s;
}

/* ---- connections ---- */

static bool name_host(SSL *ssl, const char *host)
{
    unsigned char bytes[16];
    if (inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set1_host(ssl, host) == 1 && SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME,
                                                     TLSEXT_NAMETYPE_host_name, (void *)(uintptr_t)host) == 1;
}

struct tls *tls_open(struct tls_context *c, int fd, const char *host)
{
    struct tls *t = mem_new(1, sizeof *t);
    if (!t) return NULL;
    ERR_clear_error();
    pthread_mutex_lock(&c->lock);
    t->ssl = SSL_new(c->ssl);
    pthread_mutex_unlock(&c->lock);
    if (!t->ssl || SSL_set_fd(t->ssl, fd) != 1 || (host && !name_host(t->ssl, host))) {
        tls_close(t);
        return NULL;
    }
    if (host)
        SSL_set_connect_state(t->ssl);
    else
        SSL_set_accept_state(t->ssl);
    return t;
}

void tls_close(struct tls *t)
{
    if (!t) return;
    SSL_free(t->ssl);
    mem_free(t);
}

/* To be called right after what gave `n`. */
static int state_of(struct tls *t, int n)
{
    t->system = errno;
    t->error = SSL_get_error(t->ssl, n);
    if (t->error == SSL_ERROR_WANT_READ) return TLS_READS;
    if (t->error == SSL_ERROR_WANT_WRITE) return TLS_WRITES;
    if (t->error == SSL_ERROR_ZERO_RETURN) return TLS_ENDED;
    t->over = true;
    return TLS_BROKEN;
}

int tls_shake(struct tls *t)
{
    ERR_clear_error();
    int n = SSL_do_handshake(t->ssl);
    if (n != 1) return state_of(t, n);
    t->shaken = true;
    return 1;
}

static int at_most(size_t n)
{
    enum { MOST = 1 << 20 };
    return n > MOST ? MOST : (int)n;
}

long tls_receive(struct tls *t, void *bytes, size_t n)
{
    ERR_clear_error();
    int got = SSL_read(t->ssl, bytes, at_most(n));
    return got > 0 ? got : state_of(t, got);
}

long tls_send(struct tls *t, const void *bytes, size_t n)
{
    ERR_clear_error();
    int sent = SSL_write(t->ssl, bytes, at_most(n));
    return sent > 0 ? sent : state_of(t, sent);
}

void tls_end(struct tls *t)
{
    if (!t->shaken || t->over) return;
    t->over = true;
    ERR_clear_error();
    SSL_shutdown(t->ssl);
}

static tare_status explain_certificate(long result, tare_error *err)
{
    switch (result) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return error_set(err, TARE_IO, "its certificate is of another host");
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return error_set(
            err, TARE_IO,
            "its certificate was issued by nobody who is trusted here (%s); TARE_CA_FILE may name a file "
            "of other issuers",
            X509_verify_cert_error_string(result));
    default:
        return error_set(err, TARE_IO, "its certificate is not good: %s",
                         X509_verify_cert_error_string(result));
    }
}

tare_status tls_why(struct tls *t, tare_error *err)
{
    long result = SSL_get_verify_result(t->ssl);
    if (result != X509_V_OK) return explain_certificate(result, err);
    if (t->error == SSL_ERROR_SYSCALL)
        return error_set(err, TARE_IO, "%s", t->system ? strerror(t->system) : "cut off");
    return error_set(err, TARE_IO, "TLS: %s", reason());
}

#else

bool tls_available(void)
{
    return false;
}

static tare_status missing(tare_error *err)
{
    return error_set(err, TARE_UNSUPPORTED,
                     "this tare was built without libssl: no TLS (`make deps`, then `make`)");
}

tare_status tls_serve(struct tls_context **out, const char *certificate, const char *key, tare_error *err)
{
    (void)out, (void)certificate, (void)key;
    return missing(err);
}

tare_status tls_renew(struct tls_context *c, const char *certificate, const char *key, tare_error *err)
{
    (void)c, (void)certificate, (void)key;
    return missing(err);
}

const char *tls_complaint(const struct tls_context *c)
{
    (void)c;
    return NULL;
}

tare_status tls_trust(struct tls_context **out, const char *authorities, tare_error *err)
{
    (void)out, (void)authorities;
    return missing(err);
}

void tls_release(struct tls_context *c)
{
    (void)c;
}

struct tls *tls_open(struct tls_context *c, int fd, const char *host)
{
    (void)c, (void)fd, (void)host;
    return NULL;
}

void tls_close(struct tls *t)
{
    (void)t;
}

int tls_shake(struct tls *t)
{
    (void)t;
    return TLS_BROKEN;
}

long tls_receive(struct tls *t, void *bytes, size_t n)
{
    (void)t, (void)bytes, (void)n;
    return TLS_BROKEN;
}

long tls_send(struct tls *t, const void *bytes, size_t n)
{
    (void)t, (void)bytes, (void)n;
    return TLS_BROKEN;
}

void tls_end(struct tls *t)
{
    (void)t;
}

tare_status tls_why(struct tls *t, tare_error *err)
{
    (void)t;
    return missing(err);
}

#endif

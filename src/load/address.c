/* SPDX-License-Identifier: MIT
 * address.c - see address.h. */
#include "load/address.h"

#include <errno.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

static const char plain[] = "http://", secure[] = "https://", local[] = "unix:";

static bool begins(const char *text, const char *with)
{
    return strncasecmp(text, with, strlen(with)) == 0;
}

bool load_is_url(const char *text)
{
    return begins(text, plain) || begins(text, secure) || begins(text, local);
}

/* What goes into the request line as it is. */
static tare_status read_target(struct load_address *a, const char *text, const char *url, tare_error *err)
{
    size_t n = strcspn(text, "#"); /* a fragment is the reader's own business */
    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || (unsigned char)text[i] >= 127)
            return error_set(err, TARE_INVALID,
                             "'%.200s' has a blank or another character that must be written as %%XX", url);
    bool slash = text[0] == '/';
    if (n + !slash >= sizeof a->target)
        return error_set(err, TARE_INVALID, "'%.80s..' is longer than %zu bytes", url, sizeof a->target - 1);
    snprintf(a->target, sizeof a->target, "%s%.*s", slash ? "" : "/", (int)n, text);
    return TARE_OK;
}

/* unix:/run/server.sock:/v1/predict */
static tare_status read_unix(struct load_address *a, const char *url, tare_error *err)
{
    const char *path = url + strlen(local), *colon = strchr(path, ':');
    size_t n = colon ? (size_t)(colon - path) : strlen(path);
    struct sockaddr_un *un = (struct sockaddr_un *)&a->at[0];
    if (n == 0 || n >= sizeof un->sun_path)
        return error_set(err, TARE_INVALID,
                         "'%.200s': expected unix:/PATH/OF/SOCKET:/TARGET, the path at most %zu bytes", url,
                         sizeof un->sun_path - 1);
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, n);
    a->size[0] = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
    a->n = 1;
    a->is_unix = true;
    snprintf(a->host, sizeof a->host, "%.*s", (int)n, path);
    snprintf(a->authority, sizeof a->authority, "localhost");
    return read_target(a, colon ? colon + 1 : "/", url, err);
}

/* "name:80", "[::1]:80"; http_host_ok() has said that it is well-formed. */
static void split_authority(struct load_address *a)
{
    const char *host = a->authority, *end = strchr(host, ']');
    const char *colon = strchr(end ? end : host, ':');
    size_t n = colon ? (size_t)(colon - host) : strlen(host);
    if (end) {
        host++;
        n = (size_t)(end - host);
    }
    snprintf(a->host, sizeof a->host, "%.*s", (int)n, host);
    const char *usual = a->tls ? "443" : "80";
    snprintf(a->port, sizeof a->port, "%s", colon && colon[1] ? colon + 1 : usual);
}

tare_status load_address_read(struct load_address *a, const char *url, tare_error *err)
{
    *a = (struct load_address){.tls = begins(url, secure)};
    if (begins(url, local)) return read_unix(a, url, err);
    if (!load_is_url(url))
        return error_set(err, TARE_INVALID, "'%.200s' is no address: http://, https:// or unix: stands first",
                         url);
    const char *authority = url + strlen(a->tls ? secure : plain);
    size_t n = strcspn(authority, "/?#");
    if (memchr(authority, '@', n)) /* not shown: it holds a password */
        return error_set(err, TARE_INVALID, "an address has no user and no password: %s",
                         "--header 'Authorization: env:NAME' takes them from the environment");
    if (n <= HTTP_HOST_MAX) snprintf(a->authority, sizeof a->authority, "%.*s", (int)n, authority);
    if (n == 0 || n > HTTP_HOST_MAX || !http_host_ok(a->authority))
        return error_set(err, TARE_INVALID,
                         "'%.200s' has no good host and port: http://HOST:PORT/PATH, ports up to 65535", url);
    split_authority(a);
    return read_target(a, authority + n, url, err);
}

static const char *resolver_said(int rc)
{
    return rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc);
}

tare_status load_address_resolve(struct load_address *a, tare_error *err)
{
    if (a->is_unix) return TARE_OK;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *all = NULL;
    int rc = getaddrinfo(a->host, a->port, &hints, &all);
    if (rc) return error_set(err, TARE_IO, "%s: the name is not known: %s", a->host, resolver_said(rc));
    a->n = a->use = 0;
    for (const struct addrinfo *i = all; i && a->n < LOAD_ADDRESSES; i = i->ai_next) {
        if (i->ai_addrlen > sizeof a->at[0]) continue;
        memcpy(&a->at[a->n], i->ai_addr, i->ai_addrlen);
        a->size[a->n++] = i->ai_addrlen;
    }
    freeaddrinfo(all);
    return a->n ? TARE_OK : error_set(err, TARE_IO, "%s has no address", a->host);
}

/* SPDX-License-Identifier: MIT
 * address.h - where a service is: an URL taken apart, its name resolved once. */
#ifndef LOAD_ADDRESS_H
#define LOAD_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "core/error.h"
#include "http/http_parse.h"

enum { LOAD_ADDRESSES = 8 };

struct load_address {
    char host[HTTP_HOST_MAX + 1], port[6]; /* host without the brackets of IPv6; the path of a unix socket */
    char authority[HTTP_HOST_MAX + 8];     /* what Host says */
    char target[HTTP_URL_MAX];             /* path and query */
    bool tls, is_unix;
    struct sockaddr_storage at[LOAD_ADDRESSES]; /* resolved, in the system's order */
    socklen_t size[LOAD_ADDRESSES];
    unsigned n, use; /* `use`: the one that is tried now */
};

bool load_is_url(const char *text); /* "http://..", "https://..", "unix:.." in front */
/* Takes it apart; asks nobody. TARE_INVALID: what is wrong with it. */
tare_status load_address_read(struct load_address *a, const char *url, tare_error *err);
/* Asks the system's resolver, which has times of its own. */
tare_status load_address_resolve(struct load_address *a, tare_error *err);

#endif

/* SPDX-License-Identifier: MIT
 * webhook.h - one alert to one http:// or https:// URL, through libcurl. It waits for the network, so it lives in a
 * process of its own (`tare __webhook`, started by watch_hook.c) and is never called by what samples. libcurl is loaded
 * there and only there: linked, it would add 4 ms and 6 MB to every start of tare. */
#ifndef WATCH_WEBHOOK_H
#define WATCH_WEBHOOK_H

#include <stddef.h>

#include "core/error.h"

#define WEBHOOK_LIMIT_MS 9000L /* less than HOOK_LIMIT_NS, so that there is time left to say why */

/* TARE_INVALID: not a URL that can be posted to. TARE_UNSUPPORTED: there is no libcurl. Asks no network. */
tare_status webhook_check(const char *url, tare_error *err);
/* POST n bytes of JSON. An answer other than 2xx is a failure, redirections too. */
tare_status webhook_post(const char *url, const char *json, size_t n, tare_error *err);
/* "7.88.1"; "": no libcurl here. Stays valid: the library is not let go of. */
const char *webhook_library(void);

#endif

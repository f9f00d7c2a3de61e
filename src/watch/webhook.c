/* SPDX-License-Identifier: MIT
 * webhook.c - see webhook.h. Errors name the host, never the rest of the URL: what follows it is often a secret. */
#include "watch/webhook.h"

#define CURL_DISABLE_TYPECHECK 1
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* The calls that are used, found by name. */
#define CURL_CALLS(X)                                                                                       \
    X(easy_init)                                                                                            \
    X(easy_setopt)                                                                                          \
    X(easy_perform)                                                                                         \
    X(easy_getinfo)                                                                                         \
    X(easy_strerror)                                                                                        \
    X(easy_cleanup)                                                                                         \
    X(slist_append)                                                                                         \
    X(slist_free_all)                                                                                       \
    X(url)                                                                                                  \
    X(url_set)                                                                                              \
    X(url_get)                                                                                              \
    X(url_cleanup)                                                                                          \
    X(free)                                                                                                 \
    X(version_info)

struct curl {
#define X(name) __typeof__(curl_##name) *name;
    CURL_CALLS(X)
#undef X
};

static const struct {
    size_t offset;
    const char *name;
} calls[] = {
#define X(name) {offsetof(struct curl, name), "curl_" #name},
    CURL_CALLS(X)
#undef X
};

/* NULL: there is none, or an old one. Loaded once and kept: it does not like to be unloaded. */
static const struct curl *load_curl(tare_error *err)
{
    static struct curl loaded;
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < sizeof calls / sizeof *calls; i++) {
        void *found = dlsym(library, calls[i].name);
        memcpy((char *)&loaded + calls[i].offset, &found, sizeof found);
        if (!found) library = NULL;
    }
    if (library) return &loaded;
    error_set(err, TARE_UNSUPPORTED, "no libcurl: libcurl.so.4 cannot be loaded, or is older than 7.62");
    return NULL;
}

const char *webhook_library(void)
{
    const struct curl *c = load_curl(NULL);
    return c ? c->version_info(CURLVERSION_NOW)->version : "";
}

/* ---- the URL ---- */

static bool is_web(const char *scheme)
{
    return scheme && (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
}

static tare_status check_url(const struct curl *c, const char *url, char *host, size_t size, tare_error *err)
{
    CURLU *parts = c->url();
    char *scheme = NULL, *name = NULL;
    if (!parts) return error_set(err, TARE_NOMEM, "out of memory for a URL");
    CURLUcode code = c->url_set(parts, CURLUPART_URL, url, 0);
    if (code == CURLUE_OK) c->url_get(parts, CURLUPART_SCHEME, &scheme, 0);
    if (code == CURLUE_OK) c->url_get(parts, CURLUPART_HOST, &name, 0);
    bool web = is_web(scheme) && name && *name;
    if (web) snprintf(host, size, "%s", name);
    (c->free)(scheme);
    (c->free)(name);
    c->url_cleanup(parts);
    return web ? TARE_OK
               : error_set(err, TARE_INVALID,
                           "'%.80s' is not a URL of the kind http://host/path or https://host/path", url);
}

tare_status webhook_check(const char *url, tare_error *err)
{
    char host[256];
    const struct curl *c = load_curl(err);
    return c ? check_url(c, url, host, sizeof host, err) : TARE_UNSUPPORTED;
}

/* ---- the delivery ---- */

static size_t ignore_answer(char *bytes, size_t size, size_t n, void *ctx)
{
    (void)bytes;
    (void)ctx;
    return size * n;
}

struct delivery {
    const char *url, *json, *host;
    size_t n;
    struct curl_slist *headers;
};

/* No signals of libcurl, no redirections, a limit on all of it: nothing may outlive the process that delivers. */
static tare_status post_delivery(const struct curl *c, CURL *h, const struct delivery *d, tare_error *err)
{
    char why[CURL_ERROR_SIZE] = "";
    long answer = 0;
    c->easy_setopt(h, CURLOPT_ERRORBUFFER, why);
    c->easy_setopt(h, CURLOPT_URL, d->url);
    c->easy_setopt(h, CURLOPT_HTTPHEADER, d->headers);
    c->easy_setopt(h, CURLOPT_USERAGENT, "tare/" TARE_VERSION);
    c->easy_setopt(h, CURLOPT_POSTFIELDS, d->json);
    c->easy_setopt(h, CURLOPT_POSTFIELDSIZE, (long)d->n);
    c->easy_setopt(h, CURLOPT_TIMEOUT_MS, WEBHOOK_LIMIT_MS);
    c->easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    c->easy_setopt(h, CURLOPT_WRITEFUNCTION, ignore_answer);
    CURLcode code = c->easy_perform(h);
    if (code != CURLE_OK)
        return error_set(err, TARE_IO, "%s: %s", d->host, why[0] ? why : c->easy_strerror(code));
    c->easy_getinfo(h, CURLINFO_RESPONSE_CODE, &answer);
    if (answer / 100 == 2) return TARE_OK;
    return error_set(err, TARE_IO, "%s answered %ld%s", d->host, answer,
                     answer / 100 == 3 ? " (redirections are not followed)" : "");
}

tare_status webhook_post(const char *url, const char *json, size_t n, tare_error *err)
{
    char host[256];
    const struct curl *c = load_curl(err);
    tare_status s = c ? check_url(c, url, host, sizeof host, err) : TARE_UNSUPPORTED;
    if (s != TARE_OK) return s;
    CURL *h = c->easy_init();
    struct delivery d = {url, json, host, n, c->slist_append(NULL, "Content-Type: application/json")};
    s = h && d.headers ? post_delivery(c, h, &d, err)
                       : error_set(err, TARE_NOMEM, "out of memory for libcurl");
    c->slist_free_all(d.headers);
    c->easy_cleanup(h);
    return s;
}

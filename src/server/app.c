/* SPDX-License-Identifier: MIT
 * app.c - one page, its script and its style sheet, sent as the gzip bytes they are kept as. Script and style are named
 * by their hash, so a browser keeps them for ever; the page that names them is asked for each time, and is 304 while
 * it is the same. */
#include "server/app.h"

#include <openssl/sha.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "report/html.h"
#include "server/route.h"

enum { APP_HASH_LEN = 16 };

extern const unsigned char app_page_begin[], app_page_end[], app_script_begin[], app_script_end[],
    app_style_begin[], app_style_end[]; /* report/page_embed.c */

static const struct app_file {
    const unsigned char *begin, *end;
    const char *type;
} files[] = {{app_page_begin, app_page_end, "text/html; charset=utf-8"},
             {app_script_begin, app_script_end, "text/javascript; charset=utf-8"},
             {app_style_begin, app_style_end, "text/css; charset=utf-8"}};
enum { APP_PAGE, APP_SCRIPT, APP_STYLE, APP_FILES };

static char hashes[APP_FILES][APP_HASH_LEN + 1];

/* The first digits of the SHA-256 of the compressed bytes: web/build.mjs names the files by the same. */
static void hash_files(void)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    for (int i = 0; i < APP_FILES; i++) {
        SHA256(files[i].begin, (size_t)(files[i].end - files[i].begin), hash);
        for (int k = 0; k < APP_HASH_LEN / 2; k++) snprintf(hashes[i] + 2 * k, 3, "%02x", hash[k]);
    }
}

bool app_is_built(void)
{
    return files[APP_PAGE].end > files[APP_PAGE].begin;
}

static void send_file(struct exchange *x, int which, const char *policy)
{
    static pthread_once_t hashed = PTHREAD_ONCE_INIT;
    const struct app_file *f = &files[which];
    pthread_once(&hashed, hash_files);
    if (!app_is_built()) {
        reply_problem(x, 501, "%s", HTML_MISSING);
        return;
    }
    if (which != APP_PAGE && strcmp(x->param, hashes[which]) != 0) {
        reply_problem(x, 404, "there is nothing here");
        return;
    }
    const char *known = http_header(&x->head, "if-none-match");
    bool same = known && strstr(known, hashes[which]);
    x->reply.status = same ? 304 : 200;
    x->reply.type = f->type;
    x->reply.policy = policy;
    x->reply.extra = arena_printf(&x->arena, "ETag: \"%s\"\r\n%s", hashes[which],
                                  same ? "" : "Content-Encoding: gzip\r\n");
    if (!same) buf_add(&x->reply.body, f->begin, (size_t)(f->end - f->begin));
}

#define FOR_EVER "Cache-Control: public, max-age=31536000, immutable\r\n"
#define NOTHING "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"

static void send_page(struct server *s, struct exchange *x)
{
    (void)s;
    send_file(
        x, APP_PAGE,
        "Cache-Control: no-cache\r\n"
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
        "Cross-Origin-Opener-Policy: same-origin\r\nReferrer-Policy: no-referrer\r\n");
}

static void send_script(struct server *s, struct exchange *x)
{
    (void)s;
    send_file(x, APP_SCRIPT, FOR_EVER NOTHING);
}

static void send_style(struct server *s, struct exchange *x)
{
    (void)s;
    send_file(x, APP_STYLE, FOR_EVER NOTHING);
}

const struct steps app_page = {.now = send_page, .type = "text/html", .replies = "200,304,501"};
const struct steps app_script = {.now = send_script, .type = "text/javascript", .replies = "200,304,501"};
const struct steps app_style = {.now = send_style, .type = "text/css", .replies = "200,304,501"};

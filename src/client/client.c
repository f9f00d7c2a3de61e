/* SPDX-License-Identifier: MIT
 * client.c - see client.h. A question is written, its reply read by http_parse; what is left over of a connection that
 * is not as expected is never used again. */
#include "client/client.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "client/wire.h"
#include "core/clock.h"
#include "core/mem.h"
#include "http/http_parse.h"
#include "tls/tls.h"

enum { TOKEN_MAX = 512, PREFIX_MAX = 512, INTERIM_MAX = 16 };

struct client {
    struct client_options options;
    struct wire_place place;
    struct wire wire;
    char token[TOKEN_MAX];
    char host[HTTP_HOST_MAX + 1]; /* as Host has it */
    char prefix[PREFIX_MAX];      /* the path of the URL */
    char url[1100];
    /* the question under way */
    struct http_parser parser;
    struct http_head head;
    struct client_reply *reply;
    bool too_large, began, ended;
    unsigned interim; /* 100 Continue and the like that came before it */
    uint64_t until_ns;
};

/* ---- the URL ---- */

bool client_is_url(const char *text)
{
    return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
}

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

/* The host without brackets, and the port: the text is name[:port] that http_host_ok() took. */
static void split_authority(struct client *c, const char *text)
{
    const char *end = text[0] == '[' ? strchr(text, ']') : text + strcspn(text, ":");
    const char *begin = text + (text[0] == '[');
    const char *port = strchr(end, ':');
    snprintf(c->place.host, sizeof c->place.host, "%.*s", (int)(end - begin), begin);
    if (port)
        snprintf(c->place.port, sizeof c->place.port, "%s", port + 1);
    else
        snprintf(c->place.port, sizeof c->place.port, "%s", c->place.tls ? "443" : "80");
}

/* A path that is sent as it is: no blanks, nothing that ends a line. */
static bool is_path(const char *s)
{
    for (; *s; s++)
        if (*s <= ' ' || *s == 127 || (unsigned char)*s > 127 || *s == '?' || *s == '#') return false;
    return true;
}

static tare_status read_url(struct client *c, const char *url, tare_error *err)
{
    bool tls = strncasecmp(url, "https://", 8) == 0;
    if (!client_is_url(url))
        return error_set(err, TARE_INVALID, "'%.80s' is no URL of a server: http:// or https:// stands first",
                         url);
    const char *authority = url + (tls ? 8 : 7);
    size_t n = strcspn(authority, "/?#"), path = strlen(authority + n);
    if (memchr(authority, '@', n)) /* not shown: it holds a password */
        return error_set(err, TARE_INVALID,
                         "a URL of a server has no user and no password: a token says who asks");
    if (n < sizeof c->host) snprintf(c->host, sizeof c->host, "%.*s", (int)n, authority);
    if (n >= sizeof c->host || !http_host_ok(c->host))
        return error_set(err, TARE_INVALID,
                         "'%.80s' has no good host and port: http://HOST:PORT, ports up to 65535", url);
    while (path && authority[n + path - 1] == '/') path--;
    if (path < sizeof c->prefix) snprintf(c->prefix, sizeof c->prefix, "%.*s", (int)path, authority + n);
    if (path >= sizeof c->prefix || !is_path(c->prefix))
        return error_set(err, TARE_INVALID, "'%.80s' has no good path: no query, no fragment, no blanks",
                         url);
    c->place.tls = tls;
    split_authority(c, c->host);
    snprintf(c->url, sizeof c->url, "%s://%s%s", tls ? "https" : "http", c->host, c->prefix);
    return TARE_OK;
}

static tare_status read_token(struct client *c, const char *token, tare_error *err)
{
    size_t n = token ? strlen(token) : 0;
    for (size_t i = 0; i < n; i++)
        if (token[i] <= ' ' || token[i] >= 127)
            return error_set(err, TARE_INVALID, "the token has a character that no token has");
    if (n && !c->place.tls && !is_loopback(c->place.host))
        return error_set(
            err, TARE_INVALID,
            "%s: a token goes to another machine encrypted only: https://, or a tunnel to localhost", c->url);
    if (n >= sizeof c->token) return error_set(err, TARE_INVALID, "the token is longer than any token");
    if (n) memcpy(c->token, token, n + 1);
    return TARE_OK;
}

tare_status client_open(struct client **out, const char *url, const struct client_options *o, tare_error *err)
{
    struct client *c = mem_new(1, sizeof *c);
    if (!c) return error_nomem(err, "a connection");
    *c = (struct client){.options = *o, .wire = WIRE_INIT};
    tare_status s = read_url(c, url, err);
    if (s == TARE_OK) s = read_token(c, o->token, err);
    if (s == TARE_OK && !http_library())
        s = error_set(err, TARE_UNSUPPORTED, "%s: this tare was built without llhttp (make deps, then make)",
                      c->url);
    if (s == TARE_OK && c->place.tls && !tls_available())
        s = error_set(err, TARE_UNSUPPORTED, "%s: this tare was built without libssl: no https://", c->url);
    if (!c->options.deadline_ms) c->options.deadline_ms = CLIENT_DEADLINE_MS;
    if (!c->options.reply_max) c->options.reply_max = CLIENT_REPLY_MAX;
    if (s == TARE_OK)
        *out = c;
    else
        client_close(c);
    return s;
}

void client_close(struct client *c)
{
    if (!c) return;
    wire_close(&c->wire);
    explicit_bzero(c->token, sizeof c->token);
    mem_free(c);
}

const char *client_url(const struct client *c)
{
    return c->url;
}

void client_escape(struct buf *to, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        bool plain = (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        if (plain || strchr("-._~", *p))
            buf_add_char(to, (char)*p);
        else
            buf_printf(to, "%%%02X", *p);
    }
}

void client_reply_release(struct client_reply *r)
{
    buf_release(&r->body);
    *r = (struct client_reply)CLIENT_REPLY_INIT;
}

/* ---- the reply ---- */

static void to_body(void *ctx, const char *bytes, size_t n)
{
    struct client *c = ctx;
    if (n > c->options.reply_max - c->reply->body.len)
        c->too_large = true;
    else
        buf_add(&c->reply->body, bytes, n);
}

static void reply_ends(struct client *c)
{
    c->reply->status = c->head.status;
    c->ended = true;
}

/* 100 Continue and the like stand before it. */
static tare_status reply_goes_on(struct client *c, tare_error *err)
{
    http_begin(&c->parser, &c->head);
    return ++c->interim <= INTERIM_MAX ? TARE_OK
                                       : error_set(err, TARE_FORMAT, "nothing but interim replies comes");
}

static tare_status judge(struct client *c, enum http_step step, tare_error *err)
{
    if (c->too_large)
        return error_set(err, TARE_FORMAT, "the reply is larger than %zu bytes", c->options.reply_max);
    if (c->reply->body.failed) return error_nomem(err, "a reply");
    if (step == PARSE_REFUSED) return error_set(err, TARE_FORMAT, "the reply is bad: %s", c->parser.why);
    return TARE_OK;
}

/* n bytes that came. What stands behind the reply is not looked at, but the connection is not used again. */
static tare_status take(struct client *c, const char *bytes, size_t n, tare_error *err)
{
    bool again = n > 0;
    tare_status s = TARE_OK;
    c->began = true;
    while (again && s == TARE_OK && !c->ended) {
        size_t used = 0;
        enum http_step step = http_parse(&c->parser, bytes, n, &used);
        bytes += used;
        n -= used;
        s = judge(c, step, err);
        if (step == PARSE_END && c->head.status >= 200)
            reply_ends(c);
        else if (step == PARSE_END)
            s = reply_goes_on(c, err);
        again = n > 0 || step == PARSE_HEAD;
    }
    if (c->ended && n) c->head.keep_alive = false;
    return s;
}

static tare_status receive(struct client *c, tare_error *err)
{
    char bytes[16384];
    long n = wire_receive(&c->wire, bytes, sizeof bytes, err);
    if (n == 0) return TARE_OK;
    if (n > 0) return take(c, bytes, (size_t)n, err);
    if (n == WIRE_BROKEN) return TARE_IO;
    if (!c->began) return error_set(err, TARE_IO, "the server closed the connection without a reply");
    if (http_parse_ended(&c->parser) != PARSE_END) return judge(c, PARSE_REFUSED, err);
    reply_ends(c);
    c->head.keep_alive = false;
    return TARE_OK;
}

/* ---- the question ---- */

static tare_status write_question(const struct client *c, const struct client_request *q, struct buf *out,
                                  tare_error *err)
{
    const char *target = c->prefix[0] || q->target[0] ? q->target : "/";
    buf_printf(out, "%s %s%s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\nUser-Agent: tare/%s\r\n",
               q->method, c->prefix, target, c->host, TARE_VERSION);
    if (c->token[0]) buf_printf(out, "Authorization: Bearer %s\r\n", c->token);
    if (q->type) buf_printf(out, "Content-Type: %s\r\nContent-Length: %zu\r\n", q->type, q->n);
    if (q->headers) buf_add_str(out, q->headers);
    buf_add_str(out, "\r\n");
    if (q->n) buf_add(out, q->body, q->n);
    return buf_status(out, err);
}

/* Sends and receives at once: a server may answer (413) before it has read all, and then reads no more. */
static tare_status exchange(struct client *c, const struct buf *text, tare_error *err)
{
    size_t sent = 0;
    tare_status s = TARE_OK;
    tare_error broken = TARE_ERROR_INIT;
    bool sending = true;
    while (s == TARE_OK && !c->ended) {
        long n = sending ? wire_send(&c->wire, text->data + sent, text->len - sent, &broken) : 0;
        if (n > 0) sent += (size_t)n;
        sending = n >= 0 && sent < text->len; /* where sending fails, a reply may be there all the same */
        if (n > 0 && sending) continue;
        if (!wire_wait(&c->wire, sending, c->until_ns))
            return error_set(err, TARE_IO, "no answer in %u ms", c->options.deadline_ms);
        s = receive(c, err);
    }
    if (sent < text->len) c->head.keep_alive = false;
    if (s != TARE_OK && !c->began && broken.text[0]) return error_set(err, TARE_IO, "%s", broken.text);
    return s;
}

static tare_status ask_once(struct client *c, const struct buf *text, tare_error *err)
{
    tare_status s = TARE_OK;
    buf_clear(&c->reply->body);
    c->too_large = c->began = c->ended = false;
    c->interim = 0;
    if (c->wire.fd < 0) s = wire_open(&c->wire, &c->place, c->until_ns, err);
    if (s != TARE_OK) return s;
    http_parser_init_replies(&c->parser, to_body, c);
    http_begin(&c->parser, &c->head);
    s = exchange(c, text, err);
    if (s != TARE_OK || !c->head.keep_alive) wire_close(&c->wire);
    return s;
}

tare_status client_ask(struct client *c, const struct client_request *q, struct client_reply *reply,
                       tare_error *err)
{
    struct buf text = BUF_INIT;
    c->reply = reply;
    buf_clear(&reply->body);
    c->until_ns = instant_now().ns + c->options.deadline_ms * UINT64_C(1000000);
    if (c->wire.fd >= 0 && wire_is_stale(&c->wire)) wire_close(&c->wire);
    bool kept = c->wire.fd >= 0;
    tare_status s = write_question(c, q, &text, err);
    if (s == TARE_OK) s = ask_once(c, &text, err);
    if (s == TARE_IO && kept && q->harmless && !c->began) s = ask_once(c, &text, err);
    explicit_bzero(text.data, text.len); /* it holds the token */
    buf_release(&text);
    if (s != TARE_OK) error_wrap(err, "%s", c->url);
    return s;
}

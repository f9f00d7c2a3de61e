/* SPDX-License-Identifier: MIT
 * behaviour.c - what the reference server does with a request, by its path; numbers are in the query, times in
 * milliseconds. One row of the table each. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref_server.h"

double number_of(const struct request *r, const char *name, double otherwise)
{
    size_t n = strlen(name);
    for (const char *at = r->query; at && *at;) {
        if (strncmp(at, name, n) == 0 && at[n] == '=') return strtod(at + n + 1, NULL);
        at = strchr(at, '&');
        if (at) at++;
    }
    return otherwise;
}

uint64_t ms_of(const struct request *r, const char *name, double otherwise)
{
    double ms = number_of(r, name, otherwise);
    return ms > 0 ? (uint64_t)(ms * 1e6) : 0;
}

static struct step *add_step(struct script *s, uint64_t at, enum act act)
{
    if (s->n_steps == s->steps_room) {
        s->steps_room = s->steps_room ? 2 * s->steps_room : 8;
        s->steps = realloc(s->steps, s->steps_room * sizeof *s->steps);
        if (!s->steps) abort();
    }
    struct step *step = &s->steps[s->n_steps++];
    *step = (struct step){.at = at, .act = act, .from = s->n_bytes};
    return step;
}

void script_act(struct script *s, uint64_t at, enum act act)
{
    add_step(s, at, act);
}

struct step *script_write(struct script *s, uint64_t at, const void *bytes, size_t n)
{
    struct step *step = add_step(s, at, ACT_WRITE);
    if (s->n_bytes + n > s->bytes_room) {
        s->bytes_room = 2 * (s->n_bytes + n);
        s->bytes = realloc(s->bytes, s->bytes_room);
        if (!s->bytes) abort();
    }
    if (n) memcpy(s->bytes + s->n_bytes, bytes, n);
    s->n_bytes += n;
    step->n = n;
    return step;
}

struct step *script_printf(struct script *s, uint64_t at, const char *format, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, format);
    int n = vasprintf(&text, format, ap);
    va_end(ap);
    if (n < 0) abort();
    struct step *step = script_write(s, at, text, (size_t)n);
    free(text);
    return step;
}

void script_reply(struct script *s, uint64_t at, unsigned status, const char *body)
{
    script_printf(s, at, "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                  status, status < 400 ? "OK" : "Bad", strlen(body), body);
}

double unit_of(const struct server_state *shared, const struct request *r, unsigned salt)
{
    uint64_t z = (shared->seed * 1000003 + r->number * 64 + salt) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

uint64_t queue_end(struct server_state *shared, const struct request *r, unsigned servers, uint64_t service)
{
    unsigned best = 0;
    for (unsigned i = 1; i < servers && i < 64; i++)
        if (shared->busy[i] < shared->busy[best]) best = i;
    uint64_t start = shared->busy[best] > r->received ? shared->busy[best] : r->received;
    return shared->busy[best] = start + service;
}

/* ---- answers in time ---- */

/* {"n":7,"ok":true,"pad":".."} of about `bytes`. */
static void answer(struct script *s, uint64_t at, const struct request *r)
{
    size_t bytes = (size_t)number_of(r, "bytes", 32);
    char *pad = calloc(1, bytes + 1), *body = NULL;
    if (!pad) abort();
    memset(pad, 'x', bytes > 24 ? bytes - 24 : 0);
    int n = asprintf(&body, "{\"n\":%llu,\"ok\":true,\"pad\":\"%s\"}", (unsigned long long)r->number, pad);
    if (n < 0) abort();
    script_reply(s, at, (unsigned)number_of(r, "status", 200), body);
    free(body);
    free(pad);
}

static void fixed(struct server_state *shared, const struct request *r, struct script *out)
{
    (void)shared;
    answer(out, r->received + ms_of(r, "ms", 0), r);
}

/* Stands still for the last `for` s of every `every` s since the first request: what arrives or would be answered then
 * waits until the end of it. */
static void stall(struct server_state *shared, const struct request *r, struct script *out)
{
    uint64_t every = ms_of(r, "every", 10) * 1000, still = ms_of(r, "for", 1) * 1000,
             work = ms_of(r, "ms", 5);
    uint64_t at = r->received - shared->began, left = every - at % every;
    if (left <= still) {
        at += left + work;
    } else if (left - still < work) {
        at += work + still;
    } else {
        at += work;
    }
    answer(out, shared->began + at, r);
}

static void bimodal(struct server_state *shared, const struct request *r, struct script *out)
{
    bool slow = unit_of(shared, r, 1) < number_of(r, "share", 0.1);
    answer(out, r->received + (slow ? ms_of(r, "slow", 50) : ms_of(r, "ms", 5)), r);
}

static void errors(struct server_state *shared, const struct request *r, struct script *out)
{
    uint64_t at = r->received + ms_of(r, "ms", 1);
    if (unit_of(shared, r, 2) < number_of(r, "share", 1)) {
        script_reply(out, at, (unsigned)number_of(r, "code", 500), "{\"error\":{\"message\":\"as asked\"}}");
    } else {
        answer(out, at, r);
    }
}

static void silent(struct server_state *shared, const struct request *r, struct script *out)
{
    if (unit_of(shared, r, 3) < number_of(r, "share", 1)) return;
    answer(out, r->received + ms_of(r, "ms", 5), r);
}

/* A queue: `servers` at work, service times of the exponential distribution with this mean: M/M/n for Poisson load. */
static void queue(struct server_state *shared, const struct request *r, struct script *out)
{
    double mean = number_of(r, "ms", 10), u = unit_of(shared, r, 4);
    uint64_t service = (uint64_t)(-log(1 - u) * mean * 1e6);
    answer(out, queue_end(shared, r, (unsigned)number_of(r, "servers", 4), service), r);
}

/* What was sent, sent back. */
static void echo(struct server_state *shared, const struct request *r, struct script *out)
{
    (void)shared;
    script_printf(out, r->received,
                  "HTTP/1.1 200 OK\r\nX-Method: %s\r\nX-Query: %s\r\nContent-Length: %zu\r\n\r\n", r->method,
                  r->query, r->n_body);
    script_write(out, r->received, r->body, r->n_body);
}

/* Answers in turn: 0, 1, .. kinds - 1. */
static void varies(struct server_state *shared, const struct request *r, struct script *out)
{
    char body[32];
    (void)shared;
    snprintf(body, sizeof body, "%" PRIu64, r->number % (uint64_t)number_of(r, "kinds", 2));
    script_reply(out, r->received, 200, body);
}

static void redirect(struct server_state *shared, const struct request *r, struct script *out)
{
    (void)shared;
    script_printf(out, r->received, "HTTP/1.1 302 Found\r\nLocation: /fixed\r\nContent-Length: 0\r\n\r\n");
}

/* ---- slow, wrong and broken ---- */

/* The body in `parts` pieces, `gap` apart; chunked=1: without a length. */
static void slow_body(struct server_state *shared, const struct request *r, struct script *out)
{
    unsigned parts = (unsigned)number_of(r, "parts", 10), n = (unsigned)number_of(r, "bytes", 100);
    uint64_t at = r->received + ms_of(r, "ms", 0), gap = ms_of(r, "gap", 10);
    bool chunked = number_of(r, "chunked", 0) > 0;
    char piece[4096];
    (void)shared;
    if (n > sizeof piece) n = sizeof piece;
    memset(piece, 'b', sizeof piece);
    if (chunked) {
        script_printf(out, at, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    } else {
        script_printf(out, at, "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n", parts * n);
    }
    for (unsigned i = 0; i < parts; i++) {
        at += gap;
        if (chunked) {
            script_printf(out, at, "%x\r\n%.*s\r\n", n, (int)n, piece);
        } else {
            script_write(out, at, piece, n);
        }
    }
    if (chunked) script_printf(out, at, "0\r\n\r\n");
}

/* A header of 64 bytes, one at a time, `gap` apart. */
static void loris(struct server_state *shared, const struct request *r, struct script *out)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nX-Slow: 0123456789012345678\r\nContent-Length: 0\r\n\r\n";
    (void)shared;
    for (size_t i = 0; i < sizeof head - 1; i++)
        script_write(out, r->received + ms_of(r, "gap", 100) * (i + 1), head + i, 1);
}

static void invalid(struct server_state *shared, const struct request *r, struct script *out)
{
    (void)shared;
    script_printf(out, r->received, "HTTP/7.9 twohundred yes\r\nfoo\r\n\r\n");
    out->close = true;
}

/* Announces `bytes` and sends as many as `sent`: fewer and the end, or more. */
static void wrong_length(struct server_state *shared, const struct request *r, struct script *out)
{
    int sent = (int)number_of(r, "sent", 10);
    char body[4096];
    (void)shared;
    memset(body, 'w', sizeof body);
    script_printf(out, r->received, "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n%.*s",
                  (unsigned)number_of(r, "bytes", 100), sent < 4096 ? sent : 4096, body);
    out->close = true;
}

static void endless(struct server_state *shared, const struct request *r, struct script *out)
{
    char chunk[4096 + 8];
    (void)shared;
    memset(chunk, 'e', sizeof chunk);
    memcpy(chunk, "1000\r\n", 6);
    memcpy(chunk + 6 + 4096, "\r\n", 2);
    script_printf(out, r->received, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    script_write(out, r->received, chunk, 6 + 4096 + 2)->act = ACT_ENDLESS;
}

/* Half an answer, and then: */
static void half(const struct request *r, struct script *out, enum act act)
{
    script_printf(out, r->received, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it");
    script_act(out, r->received + ms_of(r, "ms", 1), act);
}

static void reset(struct server_state *shared, const struct request *r, struct script *out)
{
    if (unit_of(shared, r, 5) < number_of(r, "share", 1)) {
        half(r, out, ACT_RESET);
    } else {
        answer(out, r->received, r);
    }
}

static void half_close(struct server_state *shared, const struct request *r, struct script *out)
{
    (void)shared;
    half(r, out, ACT_SHUT);
}

/* Answers and closes without a word: keep-alive that was not kept. */
static void closes(struct server_state *shared, const struct request *r, struct script *out)
{
    (void)shared;
    answer(out, r->received, r);
    script_act(out, r->received + ms_of(r, "after", 0), ACT_CLOSE);
}

/* The server dies at the request of this number. */
static void dies(struct server_state *shared, const struct request *r, struct script *out)
{
    (void)shared;
    if (r->number >= (uint64_t)number_of(r, "at", 10)) {
        script_act(out, r->received, ACT_EXIT);
    } else {
        answer(out, r->received, r);
    }
}

static void infers(struct server_state *shared, const struct request *r, struct script *out)
{
    (void)shared;
    infer(r, out);
}

static const struct {
    const char *path;
    void (*behave)(struct server_state *, const struct request *, struct script *);
} behaviours[] = {
    {"/fixed", fixed},
    {"/stall", stall},
    {"/bimodal", bimodal},
    {"/errors", errors},
    {"/silent", silent},
    {"/queue", queue},
    {"/echo", echo},
    {"/varies", varies},
    {"/redirect", redirect},
    {"/slow", slow_body},
    {"/loris", loris},
    {"/invalid", invalid},
    {"/length", wrong_length},
    {"/endless", endless},
    {"/reset", reset},
    {"/half", half_close},
    {"/closes", closes},
    {"/dies", dies},
    {"/v1/chat/completions", stream},
    {"/v1/completions", stream},
    {"/v2/", infers},
};

void behave(struct server_state *shared, const struct request *r, struct script *out)
{
    if (!shared->began) shared->began = r->received;
    for (size_t i = 0; i < sizeof behaviours / sizeof *behaviours; i++) {
        const char *path = behaviours[i].path;
        size_t n = strlen(path);
        if (strncmp(r->path, path, n) == 0 && (path[n - 1] == '/' || !r->path[n])) {
            behaviours[i].behave(shared, r, out);
            return;
        }
    }
    script_reply(out, r->received, 404, "{\"error\":\"no such path\"}");
}

/* SPDX-License-Identifier: MIT
 * reply.c - see reply.h. */
#include "load/reply.h"

#include <stdio.h>
#include <string.h>

#include "core/crc.h"
#include "core/str.h"

/* ---- the body ---- */

static void set_fault(struct reply *r, enum load_fault fault, const char *why)
{
    if (r->o->fault != LOAD_NONE) return; /* the first one is the cause */
    r->o->fault = (uint8_t)fault;
    r->why = why;
}

/* The text may lie across two pieces: their seam is looked at by itself. */
static void look_for(struct reply *r, const char *bytes, size_t n)
{
    const char *text = r->rules->expect_body;
    size_t m = strlen(text), more = n < m - 1 ? n : m - 1;
    char seam[2 * LOAD_EXPECT_MAX];
    memcpy(seam, r->tail, r->n_tail);
    memcpy(seam + r->n_tail, bytes, more);
    r->found = memmem(seam, r->n_tail + more, text, m) || memmem(bytes, n, text, m);
    if (more == m - 1) {
        memcpy(r->tail, bytes + n - more, more);
        r->n_tail = more;
        return;
    }
    size_t all = r->n_tail + more, keep = all < m - 1 ? all : m - 1;
    memcpy(r->tail, seam + all - keep, keep);
    r->n_tail = keep;
}

/* What a server says of its refusal is the best explanation that a user can get. */
static void keep_glimpse(struct reply *r, const char *bytes, size_t n)
{
    size_t had = strlen(r->glimpse);
    for (size_t i = 0; i < n && had + 1 < sizeof r->glimpse; i++) {
        bool prints = bytes[i] >= ' ' && bytes[i] < 127;
        if (!prints && (!had || r->glimpse[had - 1] == ' ')) continue;
        r->glimpse[had++] = prints ? bytes[i] : ' ';
        r->glimpse[had] = 0;
    }
}

static void to_body(void *ctx, const char *bytes, size_t n)
{
    struct reply *r = ctx;
    struct load_outcome *o = r->o;
    if (r->interim) return;
    r->body += n;
    o->bytes = r->body < UINT32_MAX ? (uint32_t)r->body : UINT32_MAX;
    const struct reply_rules *rules = r->rules;
    if (rules->digest) o->digest = crc32c(o->digest, bytes, n);
    if (o->fault != LOAD_NONE || (rules->expect_body && !r->found)) keep_glimpse(r, bytes, n);
    if (o->fault != LOAD_NONE) return;
    if (rules->expect_body && !r->found) look_for(r, bytes, n);
    struct load_piece piece = {bytes, n, r->at_ns};
    if (rules->reader) rules->reader->bytes(rules->reader->ctx, r->state, &piece, o);
}

/* ---- an answer ---- */

void reply_open(struct reply *r, const struct reply_rules *rules, void *state)
{
    *r = (struct reply){.rules = rules, .state = state};
    http_parser_init_replies(&r->parser, to_body, r);
}

void reply_begin(struct reply *r, struct http_head *head)
{
    r->parser.ctx = r; /* it may have moved */
    r->head = head;
    r->body = r->n_tail = 0;
    r->interim = r->found = r->closes = false;
    r->glimpse[0] = 0;
    r->why = NULL;
    http_begin(&r->parser, head);
}

static bool is_expected(const struct reply *r)
{
    unsigned want = r->rules->expect_status;
    return want ? r->head->status == want : r->head->status / 100 == 2;
}

static void take_head(struct reply *r)
{
    const struct load_reader *reader = r->rules->reader;
    r->interim = r->head->status < 200;
    if (r->interim) return;
    r->o->status = r->head->status;
    r->closes = !r->head->keep_alive;
    if (!is_expected(r))
        set_fault(r, LOAD_STATUS, NULL);
    else if (r->head->length > r->rules->body_max)
        set_fault(r, LOAD_TOO_LARGE, NULL);
    else if (reader)
        reader->begin(reader->ctx, r->state, r->head, r->o);
}

static enum reply_step end_answer(struct reply *r)
{
    const struct load_reader *reader = r->rules->reader;
    r->o->end = r->at_ns;
    if (r->o->fault == LOAD_NONE && reader) r->why = reader->end(reader->ctx, r->state, r->o);
    if (r->rules->expect_body && !r->found) set_fault(r, LOAD_BODY, NULL);
    return REPLY_DONE;
}

static enum reply_step fail(struct reply *r, enum load_fault fault, const char *why)
{
    set_fault(r, fault, why);
    r->o->end = r->at_ns;
    return REPLY_FAILED;
}

enum reply_step reply_take(struct reply *r, struct reply_bytes *b, struct load_outcome *o)
{
    r->o = o;
    r->at_ns = b->at_ns;
    b->used = 0;
    for (;;) {
        size_t used = 0;
        if (!o->first_byte && b->n > b->used) o->first_byte = b->at_ns;
        enum http_step step = http_parse(&r->parser, b->at + b->used, b->n - b->used, &used);
        b->used += used;
        if (step == PARSE_REFUSED) return fail(r, LOAD_INVALID, r->parser.why);
        if (step == PARSE_HEAD) take_head(r);
        if (r->body > r->rules->body_max || o->fault == LOAD_TOO_LARGE) return fail(r, LOAD_TOO_LARGE, NULL);
        if (step == PARSE_MORE) return REPLY_MORE;
        if (step == PARSE_HEAD) continue;
        if (!r->interim) return end_answer(r);
        r->interim = false; /* 100, 103: the answer itself is still to come */
        o->first_byte = 0;
        http_begin(&r->parser, r->head);
        if (b->used == b->n) return REPLY_MORE;
    }
}

enum reply_step reply_ended(struct reply *r, uint64_t at_ns, struct load_outcome *o)
{
    r->o = o;
    r->at_ns = at_ns;
    r->closes = true;
    if (o->first_byte && http_parse_ended(&r->parser) == PARSE_END && !r->interim) return end_answer(r);
    return fail(r, LOAD_CUT, NULL);
}

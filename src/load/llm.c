/* SPDX-License-Identifier: MIT
 * llm.c - see llm.h. */
#include "load/llm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "load/openai.h"
#include "load/sse.h"

enum { WHOLE_MOST = 16 << 20 };

struct answer {
    struct sse sse;
    struct buf whole; /* an answer that is no stream */
    struct gap_list gaps;
    bool streamed, done, finished, counted, broken;
    uint64_t last_at; /* of the last event that said something; 0: none yet */
    /* while bytes are read */
    uint64_t at;
    struct llm_pool *pool;
    struct load_outcome *o;
};

static void answer_open(void *ctx, void *state)
{
    struct answer *a = state;
    a->sse = (struct sse)SSE_INIT;
    a->whole = (struct buf)BUF_INIT;
    a->pool = ctx;
}

/* What an answer that ended too early has left behind counts, too. */
static void put_gaps(struct answer *a)
{
    gaps_take(&a->pool->gaps, &a->gaps);
}

static void answer_close(void *ctx, void *state)
{
    struct answer *a = state;
    (void)ctx;
    put_gaps(a);
    vec_release(&a->gaps.at);
    sse_release(&a->sse);
    buf_release(&a->whole);
}

static void answer_begin(void *ctx, void *state, const struct http_head *head, struct load_outcome *o)
{
    struct answer *a = state;
    const char *type = http_header(head, "content-type");
    (void)ctx;
    (void)o;
    put_gaps(a);
    sse_reset(&a->sse);
    buf_clear(&a->whole);
    a->streamed = type && strncasecmp(type, "text/event-stream", strlen("text/event-stream")) == 0;
    a->done = a->finished = a->counted = a->broken = false;
    a->last_at = 0;
}

static void breaks(struct answer *a, const char *what, const char *more)
{
    if (a->broken) return;
    a->broken = true;
    snprintf(a->pool->why, sizeof a->pool->why, "%s%.200s", what, more);
}

static void take_usage(struct answer *a, const struct openai_said *said)
{
    struct load_outcome *o = a->o;
    if (!said->usage) return;
    if (said->tokens_in) o->tokens_in = said->tokens_in;
    if (said->tokens_cached) o->tokens_cached = said->tokens_cached;
    if (said->tokens_out) {
        o->tokens = said->tokens_out;
        a->counted = true;
        if (o->events == 1 && !o->first_tokens) o->first_tokens = said->tokens_out;
    }
}

static void say_something(struct answer *a, bool is_answer)
{
    struct load_outcome *o = a->o;
    a->pool->events++;
    if (!o->events++) o->first_content = a->at;
    if (is_answer && !o->first_answer) o->first_answer = a->at;
    if (a->last_at) {
        uint64_t gap = a->at > a->last_at ? a->at - a->last_at : 0;
        if (gap_add(&a->gaps, gap, NULL) < 0) a->pool->no_memory = true;
        if (gap > o->gap_max) o->gap_max = gap;
        if (!gap) {
            o->flags |= LOAD_SHARED;
            a->pool->many_per_read++;
        }
    }
    o->last_content = a->last_at = a->at;
}

static void on_event(void *ctx, const struct sse_event *e)
{
    struct answer *a = ctx;
    struct openai_said said;
    if (a->done) return;
    if (strcmp(e->data, "[DONE]") == 0) {
        a->done = true;
        return;
    }
    if (e->cut) {
        breaks(a, "an event of the stream is larger than is read", "");
        return;
    }
    if (!openai_read(e->data, e->n, &said)) {
        breaks(a, "an event of the stream is no JSON: ", e->data);
        return;
    }
    if (said.error || strcmp(e->name, "error") == 0) {
        breaks(a, "the stream tells an error: ", said.error_text);
        return;
    }
    if (said.text || said.reasoning || said.tool) say_something(a, said.text || said.tool);
    a->finished |= said.finished;
    take_usage(a, &said);
}

static void answer_bytes(void *ctx, void *state, const struct load_piece *piece, struct load_outcome *o)
{
    struct answer *a = state;
    (void)ctx;
    a->at = piece->at_ns;
    a->o = o;
    if (a->streamed) {
        sse_feed(&a->sse, piece->bytes, piece->n, &(struct sse_sink){on_event, a});
    } else if (a->whole.len + piece->n <= WHOLE_MOST) {
        buf_add(&a->whole, piece->bytes, piece->n);
    } else {
        breaks(a, "the answer is larger than is read", "");
    }
}

/* Not streamed: there is nothing to time but its end. */
static void end_whole(struct answer *a)
{
    struct openai_said said;
    a->pool->whole++;
    if (!openai_read(a->whole.data, a->whole.len, &said)) {
        breaks(a, "the answer is no JSON: ", a->whole.data);
    } else if (said.error) {
        breaks(a, "the answer is an error: ", said.error_text);
    } else {
        take_usage(a, &said);
    }
}

static void end_stream(struct answer *a)
{
    a->pool->streams++;
    a->pool->comments += a->sse.comments;
    if (!a->done && !a->finished) breaks(a, "the stream ended without [DONE] or a reason to finish", "");
    if (!a->done) a->pool->no_done++;
}

static void count_tokens(struct answer *a, struct load_outcome *o)
{
    if (!a->counted) {
        o->tokens = o->events;
        o->flags |= LOAD_ESTIMATED;
        a->pool->not_counted++;
    }
    if (o->tokens > o->events && o->events) a->pool->many_tokens++;
    if (!o->first_tokens && o->events) {
        double each = (double)o->tokens / o->events;
        o->first_tokens = each > 1 ? (uint32_t)lround(each) : 1;
    }
}

static const char *answer_end(void *ctx, void *state, struct load_outcome *o)
{
    struct answer *a = state;
    (void)ctx;
    a->o = o;
    if (a->streamed) {
        end_stream(a);
    } else {
        end_whole(a);
    }
    put_gaps(a);
    count_tokens(a, o);
    if (!a->broken) return NULL;
    o->fault = LOAD_STREAM;
    return a->pool->why;
}

static void pool_clear(void *ctx)
{
    struct llm_pool *p = ctx;
    struct gaps gaps = p->gaps;
    gaps_clear(&gaps);
    *p = (struct llm_pool){.gaps = gaps};
}

struct load_reader llm_reader(struct llm_pool *pool)
{
    return (struct load_reader){
        .name = "llm",
        .size = sizeof(struct answer),
        .ctx = pool,
        .clear = pool_clear,
        .open = answer_open,
        .close = answer_close,
        .begin = answer_begin,
        .bytes = answer_bytes,
        .end = answer_end,
    };
}

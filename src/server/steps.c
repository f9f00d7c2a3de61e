/* SPDX-License-Identifier: MIT */
#include "server/steps.h"

#include <malloc.h>
#include <stdio.h>

#include "server/route.h"

enum { LARGE_BODY = 2 << 20 };

void steps_failed(struct server *s, struct exchange *x, const tare_error *err)
{
    char text[800];
    snprintf(text, sizeof text, "request %s: %s", x->id, err->text);
    s->options.say(s->options.say_ctx, text);
    if (err->status == TARE_BUSY)
        reply_problem(x, 503, "the store is busy");
    else if (err->status == TARE_NOMEM)
        reply_problem(x, 503, "no memory");
    else if (err->status == TARE_IO)
        reply_problem(x, 507, "the store cannot be written or read");
    else
        reply_problem(x, 500, "the store failed");
}

/* A body of megabytes can become a tree of a hundred times its size, of which the allocator keeps most for later. */
static void give_back_memory(const struct exchange *x)
{
    if (x->body.len > LARGE_BODY) malloc_trim(0);
}

void steps_finish(struct exchange *x)
{
    if (x->route->steps->forget) x->route->steps->forget(x);
    x->work = NULL;
    give_back_memory(x);
    exchange_finish(x);
}

static void hand_over(struct desk *to, struct exchange *x)
{
    if (desk_put(to, x)) return;
    reply_problem(x, 503, "too many requests wait for the store");
    x->reply.extra = "Retry-After: 1\r\n";
    steps_finish(x);
}

void steps_begin(struct server *s, struct exchange *x)
{
    const struct steps *steps = x->route->steps;
    if (steps->now) steps->now(s, x);
    if (x->reply.status) return;
    exchange_hold(x);
    struct desk *readers = steps->slow ? s->viewers : s->readers;
    hand_over(steps->read && !x->work ? readers : s->writer, x);
}

void steps_read(void *ctx, struct store *st, struct exchange *x)
{
    struct server *s = ctx;
    const struct steps *steps = x->route->steps;
    steps->read(s, st, x);
    if (x->reply.status)
        steps_finish(x);
    else if (steps->take)
        steps->take(s, x);
    else
        hand_over(s->writer, x);
}

/* What is measured is kept itself, by the thousand; whatever else changes something leaves an entry in the audit. */
static bool is_audited(const struct exchange *x)
{
    return x->route->scope != SCOPE_INGEST;
}

/* All of them in one transaction, or none; with the notes that nobody waits for. */
static tare_status write_all(struct server *s, struct store *st, struct exchange *list, tare_error *err)
{
    tare_status status = st->ops->begin(st, err);
    if (status != TARE_OK) return status;
    status = notes_write(s->notes, st, err);
    for (struct exchange *x = list; x && status == TARE_OK; x = x->next) {
        status = x->route->steps->write(s, st, x, err);
        if (status == TARE_OK && is_audited(x)) status = audit_exchange(st, x, err);
    }
    tare_status end = st->ops->end(st, status == TARE_OK, status == TARE_OK ? err : NULL);
    if (status == TARE_OK && end == TARE_OK) {
        atomic_fetch_add(&s->commits, 1);
        notes_written(s->notes);
    }
    return status != TARE_OK ? status : end;
}

/* A bad one must not take those beside it along: where all together fail, each is tried by itself. */
void steps_write(void *ctx, struct store *st, struct exchange *list)
{
    struct server *s = ctx;
    tare_error err = TARE_ERROR_INIT;
    if (!list && !notes_any(s->notes)) return;
    bool together = write_all(s, st, list, &err) == TARE_OK;
    for (struct exchange *x = list, *next; x; x = next) {
        next = x->next;
        x->next = NULL;
        err = (tare_error)TARE_ERROR_INIT;
        if (!together && write_all(s, st, x, &err) != TARE_OK) {
            steps_failed(s, x, &err);
        } else {
            atomic_fetch_add(&s->committed, x->reply.status == 201);
            if (x->route->steps->written) x->route->steps->written(s, st, x);
            if (!x->reply.status) continue; /* it may be gone already */
        }
        steps_finish(x);
    }
}

/* SPDX-License-Identifier: MIT
 * carry.c - requests on connections: which one each goes out on, what comes back, what is done with a connection
 * afterwards. A request whose idle connection the server closed under it, before any byte came, goes out once more. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"
#include "load/engine_parts.h"

_Static_assert(sizeof((struct carrier *)0)->span == LOAD_SPAN_ROOM * sizeof(uint64_t), "room of a span");

enum { EVENTS = 64, ROOM = 1 << 16, READS = 16 };
#define REMAP_NS 100000000 /* the two clocks drift apart by 50 us at most meanwhile */
#define STAMP_AGE_NS UINT64_C(5000000000)

/* ---- lists ---- */

static void list_take(struct carrier_list *l, struct carrier *c)
{
    *(c->prev ? &c->prev->next : &l->first) = c->next;
    *(c->next ? &c->next->prev : &l->last) = c->prev;
    c->next = c->prev = NULL;
}

static void list_push(struct carrier_list *l, struct carrier *c)
{
    c->prev = NULL;
    c->next = l->first;
    *(l->first ? &l->first->prev : &l->last) = c;
    l->first = c;
}

static void list_append(struct carrier_list *l, struct carrier *c)
{
    c->next = NULL;
    c->prev = l->last;
    *(l->last ? &l->last->next : &l->first) = c;
    l->last = c;
}

/* ---- the kernel's time ---- */

/* Best of three: the wall clock read between two readings of ours. */
static void map_clocks(struct load_engine *e, uint64_t now)
{
    uint64_t least = UINT64_MAX;
    if (now - e->mapped_ns < REMAP_NS) return;
    for (int i = 0; i < 3; i++) {
        uint64_t before = instant_now().ns, wall = clock_unix_ns(), after = instant_now().ns;
        if (after - before >= least) continue;
        least = after - before;
        e->unix_to_raw = (int64_t)(before + least / 2 - wall);
    }
    e->mapped_ns = now;
}

/* The time of what was just read. A stamp from before the request, or from the future, is of a clock that was set. */
static uint64_t received_at(struct load_engine *e, struct load_outcome *o, uint64_t unix_ns)
{
    uint64_t now = instant_now().ns;
    map_clocks(e, now);
    uint64_t at = unix_ns ? unix_ns + (uint64_t)e->unix_to_raw : 0;
    if (at >= o->sent && at <= now && now - at < STAMP_AGE_NS) return at;
    o->flags |= LOAD_UNSTAMPED;
    return now;
}

/* ---- connections ---- */

static void watch(struct load_engine *e, struct carrier *c, int how, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = c};
    if (epoll_ctl(e->epoll, how, c->fd, &ev) < 0 && e->broken == TARE_OK)
        e->broken = error_errno(e->err, "epoll");
}

static void drop(struct load_engine *e, struct carrier *c)
{
    if (c->state == CARRIER_CLOSED) return;
    carrier_close(c); /* leaves epoll by itself */
    e->n_open--;
}

static struct carrier *new_conn(struct load_engine *e)
{
    const struct load_reader *reader = e->o.reader;
    struct carrier *c = mem_new(1, sizeof *c);
    if (!c) return NULL;
    c->fd = -1;
    c->own = (struct buf)BUF_INIT;
    if (reader && reader->size && !(c->reader_state = mem_new(1, reader->size))) goto fail;
    if (reader && reader->open) reader->open(reader->ctx, c->reader_state);
    reply_open(&c->reply, &e->rules, c->reader_state);
    if (vec_push(&e->conns, c, NULL) == TARE_OK) return c;
fail:
    mem_free(c->reader_state);
    mem_free(c);
    return NULL;
}

static struct carrier *take_closed(struct load_engine *e)
{
    struct carrier *c = e->closed.first;
    if (!c) return new_conn(e);
    list_take(&e->closed, c);
    reply_open(&c->reply, &e->rules, c->reader_state);
    return c;
}

void carry_close_all(struct load_engine *e)
{
    const struct load_reader *reader = e->o.reader;
    for (size_t i = 0; i < e->conns.n; i++) {
        struct carrier *c = e->conns.items[i];
        drop(e, c);
        if (reader && reader->close) reader->close(reader->ctx, c->reader_state);
        mem_free(c->reader_state);
        mem_free(c->reply.head);
        buf_release(&c->own);
        mem_free(c);
    }
    vec_release(&e->conns);
    for (size_t i = 0; i < e->heads.n; i++) mem_free(e->heads.items[i]);
    vec_release(&e->heads);
}

/* ---- the end of a request ---- */

static void return_head(struct load_engine *e, struct carrier *c)
{
    if (!c->reply.head) return;
    if (vec_push(&e->heads, c->reply.head, NULL) < 0) mem_free(c->reply.head);
    c->reply.head = NULL;
}

/* The connection is without a request. */
static void unload(struct load_engine *e, struct carrier *c)
{
    list_take(&e->busy, c);
    c->is_busy = false;
    if (c->is_drawn) e->o.spans->end(c->span);
    c->is_drawn = false;
    e->n_busy--;
    return_head(e, c);
}

static struct load_outcome *outcome_of(struct load_engine *e, const struct carrier *c)
{
    return engine_outcome(e, c->request);
}

static bool resend(struct load_engine *e, struct carrier *c, enum load_fault fault);

void carry_give_up(struct load_engine *e, struct carrier *c, enum load_fault fault)
{
    struct load_outcome *o = outcome_of(e, c);
    drop(e, c);
    if (resend(e, c, fault)) return;
    if (o->fault == LOAD_NONE || o->fault == LOAD_OPEN) o->fault = (uint8_t)fault;
    o->end = instant_now().ns;
    unload(e, c);
    list_push(&e->closed, c);
    engine_conclude(e, o, c->why[0] ? c->why : NULL, c->reply.glimpse);
}

static void complete(struct load_engine *e, struct carrier *c, bool keep)
{
    struct load_outcome *o = outcome_of(e, c);
    const char *why = c->reply.why;
    unload(e, c);
    c->used = true;
    if (!keep) drop(e, c);
    list_push(keep ? &e->idle : &e->closed, c);
    engine_conclude(e, o, why, c->reply.glimpse);
}

/* ---- sending ---- */

static bool make_text(struct load_engine *e, struct carrier *c)
{
    const struct load_source *s = &e->o.source;
    if (e->fixed.len) {
        c->text = e->fixed.data;
        c->n = e->fixed.len;
        return true;
    }
    struct buf *to = s->same ? &e->fixed : &c->own;
    uint64_t number = s->same ? 0 : c->request;
    if (!s->same && e->w->warm) number += LOAD_WARM_NUMBER;
    buf_clear(to);
    load_request_clear(&e->made);
    tare_status st = s->fill ? s->fill(s->ctx, number, &e->made, e->err) : TARE_OK;
    if (st == TARE_OK) load_write_request(&e->wording, &e->made, to);
    if (st == TARE_OK) st = buf_status(to, e->err);
    if (st < 0) e->broken = st;
    c->text = to->data;
    c->n = to->len;
    return st == TARE_OK;
}

static bool send_more(struct load_engine *e, struct carrier *c)
{
    enum load_fault fault = LOAD_NONE;
    size_t before = c->sent;
    while (c->sent < c->n) {
        long n = carrier_send(c, &fault);
        if (n == CARRIER_LATER) break;
        if (n > 0) continue;
        carry_give_up(e, c, n == CARRIER_ENDED ? LOAD_CUT : fault);
        return false;
    }
    e->r->bytes_sent += c->sent - before;
    bool waits = c->sent < c->n;
    if (waits != c->waits_to_send) watch(e, c, EPOLL_CTL_MOD, EPOLLIN | EPOLLRDHUP | (waits ? EPOLLOUT : 0));
    c->waits_to_send = waits;
    return true;
}

static bool begin_sending(struct load_engine *e, struct carrier *c)
{
    struct http_head *head = e->heads.n ? vec_pop(&e->heads) : mem_new(1, sizeof *head);
    if (!head) {
        e->broken = error_nomem(e->err, "an answer");
        return false;
    }
    outcome_of(e, c)->sent = instant_now().ns;
    reply_begin(&c->reply, head);
    if (e->o.spans && !c->is_drawn) e->o.spans->begin(c->span, e->w->warm);
    c->is_drawn = e->o.spans != NULL;
    c->sent = 0;
    return send_more(e, c);
}

/* A new connection for the request that `c` has. False: that failed, and why is said in the outcome. */
static bool dial(struct load_engine *e, struct carrier *c)
{
    struct load_outcome *o = outcome_of(e, c);
    enum load_fault fault = carrier_dial(c, &e->at);
    while (fault != LOAD_NONE && !e->reached && e->at.use + 1 < e->at.n) {
        e->at.use++;
        fault = carrier_dial(c, &e->at);
    }
    if (fault != LOAD_NONE) {
        carry_give_up(e, c, fault);
        return false;
    }
    o->flags |= LOAD_NEW;
    c->batch = e->batch;
    e->n_open++;
    e->r->connected++;
    if (e->n_open > e->r->most_open) e->r->most_open = e->n_open;
    watch(e, c, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
    c->waits_to_send = true;
    return true;
}

bool carry_begin(struct load_engine *e, size_t i)
{
    struct carrier *c = e->o.fresh ? NULL : e->idle.first;
    bool is_new = !c;
    if (is_new && e->n_open >= e->most_open) return false;
    if (is_new)
        c = take_closed(e);
    else
        list_take(&e->idle, c);
    if (!c) {
        e->broken = error_nomem(e->err, "a connection");
        return true;
    }
    c->request = i;
    c->is_busy = true;
    c->why[0] = c->reply.glimpse[0] = 0;
    list_append(&e->busy, c);
    e->n_busy++;
    if (!make_text(e, c)) return true;
    if (is_new)
        dial(e, c);
    else
        begin_sending(e, c);
    return true;
}

/* Only where nothing of an answer came, and the connection had worked before: then the server had closed it while it
 * was idle, and has not seen the request. */
static bool resend(struct load_engine *e, struct carrier *c, enum load_fault fault)
{
    struct load_outcome *o = outcome_of(e, c);
    bool lost = c->used && !o->first_byte && (fault == LOAD_RESET || fault == LOAD_CUT);
    if (!lost || (o->flags & LOAD_RESENT)) return false;
    o->flags |= LOAD_RESENT;
    o->fault = LOAD_OPEN;
    o->end = 0;
    e->r->reconnects++;
    return_head(e, c);
    reply_open(&c->reply, &e->rules, c->reader_state);
    dial(e, c);
    return true;
}

/* ---- receiving ---- */

static bool take_bytes(struct load_engine *e, struct carrier *c, size_t n, uint64_t unix_ns)
{
    struct load_outcome *o = outcome_of(e, c);
    struct reply_bytes b = {e->room, n, 0, received_at(e, o, unix_ns)};
    e->r->bytes_received += n;
    if (o->fault == LOAD_OPEN) o->fault = LOAD_NONE;
    enum reply_step step = reply_take(&c->reply, &b, o);
    if (step == REPLY_MORE) {
        if (o->fault == LOAD_NONE) o->fault = LOAD_OPEN;
        return true;
    }
    if (step == REPLY_FAILED) {
        snprintf(c->why, sizeof c->why, "%s", c->reply.why ? c->reply.why : "");
        carry_give_up(e, c, (enum load_fault)o->fault);
        return false;
    }
    bool whole = b.used == n && c->sent == c->n;
    e->r->surplus += b.used < n;
    complete(e, c, whole && !c->reply.closes && !e->o.fresh);
    return false;
}

static void ended(struct load_engine *e, struct carrier *c)
{
    struct load_outcome *o = outcome_of(e, c);
    uint8_t was = o->fault;
    if (was == LOAD_OPEN) o->fault = LOAD_NONE;
    if (o->first_byte && reply_ended(&c->reply, instant_now().ns, o) == REPLY_DONE)
        complete(e, c, false);
    else
        carry_give_up(e, c, LOAD_CUT);
}

/* At most so many reads in a row: others wait. epoll tells again of what is left. */
static void receive(struct load_engine *e, struct carrier *c)
{
    for (int i = 0; i < READS; i++) {
        enum load_fault fault = LOAD_NONE;
        struct carrier_bytes b = {e->room, ROOM, 0};
        long n = carrier_receive(c, &b, &fault);
        if (n == CARRIER_LATER) return;
        if (n == CARRIER_ENDED) {
            ended(e, c);
            return;
        }
        if (n < 0) {
            carry_give_up(e, c, fault);
            return;
        }
        if (!take_bytes(e, c, (size_t)n, b.unix_ns) || (n < ROOM && !c->tls)) return;
    }
}

/* ---- events ---- */

static void try_next_address(struct load_engine *e, struct carrier *c, enum load_fault fault)
{
    drop(e, c);
    if (fault == LOAD_TLS || e->reached || e->at.use + 1 >= e->at.n) {
        carry_give_up(e, c, fault);
        return;
    }
    e->at.use++;
    dial(e, c);
}

static void go_on_dialling(struct load_engine *e, struct carrier *c)
{
    enum load_fault fault =
        c->state == CARRIER_DIALS ? carrier_dialled(c, &e->at, e->trust) : carrier_shake(c);
    if (fault != LOAD_NONE && fault != LOAD_OPEN) {
        try_next_address(e, c, fault);
        return;
    }
    if (fault == LOAD_OPEN) {
        watch(e, c, EPOLL_CTL_MOD, EPOLLIN | EPOLLRDHUP | (c->waits_to_send ? EPOLLOUT : 0));
        return;
    }
    e->reached = true;
    c->waits_to_send = true; /* as epoll has it from dialling: send_more() takes it back */
    begin_sending(e, c);
}

static void happen(struct load_engine *e, struct carrier *c, uint32_t events)
{
    if (c->state == CARRIER_CLOSED || c->batch == e->batch)
        return;        /* closed, or made anew, earlier in this batch */
    if (!c->is_busy) { /* the server ends an idle connection, or says what nobody asked */
        e->r->surplus += !c->tls && recv(c->fd, e->room, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
        list_take(&e->idle, c);
        drop(e, c);
        list_push(&e->closed, c);
        return;
    }
    if (c->state != CARRIER_OPEN) {
        go_on_dialling(e, c);
        return;
    }
    if ((events & EPOLLOUT) && c->sent < c->n && !send_more(e, c)) return;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) receive(e, c);
}

void carry_wait(struct load_engine *e, uint64_t wait_ns)
{
    struct epoll_event events[EVENTS];
    struct timespec t = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)};
    int n = epoll_pwait2(e->epoll, events, EVENTS, &t, NULL);
    if (n < 0 && errno == ENOSYS) n = epoll_wait(e->epoll, events, EVENTS, (int)(wait_ns / 1000000));
    if (n < 0 && errno != EINTR) e->broken = error_errno(e->err, "epoll");
    e->batch++;
    for (int i = 0; i < n && e->broken == TARE_OK; i++) happen(e, events[i].data.ptr, events[i].events);
}

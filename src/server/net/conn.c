/* SPDX-License-Identifier: MIT
 * conn.c - one connection: requests in, replies out in their order. Never waits: what the socket does not take or the
 * writer has not committed yet is left for a later turn. A connection that is closed is freed when its turn is over. */
#include "server/net/conn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/mem.h"

enum { SPARE_MAX = 64, KEEP_BYTES = 1 << 16 };

/* ---- exchanges, used again and again ---- */

static void to_body(void *ctx, const char *bytes, size_t n)
{
    struct exchange *x = ((struct conn *)ctx)->x;
    if (x->too_large || n > x->body_max - x->body.len)
        x->too_large = true;
    else
        buf_add(&x->body, bytes, n);
}

static void name_request(struct exchange *x)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t id = x->worker->id_base + x->worker->id_next++;
    for (int i = 0; i < EXCHANGE_ID_SIZE - 1; i++) x->id[i] = digits[id >> (60 - 4 * i) & 15];
}

static bool begin_request(struct conn *c)
{
    struct worker *w = c->worker;
    struct exchange *x = w->spare;
    if (x) {
        w->spare = x->next;
        w->n_spare--;
    } else {
        if (!(x = mem_new(1, sizeof *x))) return false;
        x->body = x->reply.body = (struct buf)BUF_INIT;
        x->worker = w;
    }
    x->conn = c;
    x->peer = c->peer;
    x->began_ns = w->now_ns;
    c->x = x;
    name_request(x);
    http_begin(&c->parser, &x->head);
    return true;
}

static void keep_small(struct buf *b)
{
    if (b->cap > KEEP_BYTES) {
        buf_release(b);
        *b = (struct buf)BUF_INIT;
    }
    buf_clear(b);
}

static void exchange_drop(struct exchange *x)
{
    struct worker *w = x->worker;
    keep_small(&x->body);
    keep_small(&x->reply.body);
    arena_release(&x->arena);
    x->arena = (struct arena)ARENA_INIT;
    x->reply.status = 0;
    x->reply.extra = x->reply.policy = NULL;
    x->body_max = 0;
    x->route = NULL;
    x->scopes = 0;
    x->who[0] = x->project[0] = x->param[0] = 0;
    x->work = NULL;
    x->more = NULL;
    x->last = false;
    x->too_large = x->held = false;
    if (w->n_spare < SPARE_MAX) {
        x->next = w->spare;
        w->spare = x;
        w->n_spare++;
        return;
    }
    buf_release(&x->body);
    buf_release(&x->reply.body);
    mem_free(x);
}

/* ---- opening, closing ---- */

static void watch(struct conn *c, bool in, bool out)
{
    struct epoll_event e = {.events = (in ? EPOLLIN : 0u) | (out ? EPOLLOUT : 0u), .data.ptr = c};
    if (in == c->wants_in && out == c->wants_out) return;
    c->wants_in = in;
    c->wants_out = out;
    epoll_ctl(c->worker->epoll, EPOLL_CTL_MOD, c->fd, &e);
}

tare_status conn_open(struct worker *w, int fd, const struct address *peer)
{
    struct conn *c = mem_new(1, sizeof *c);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    if (!c) return TARE_NOMEM;
    *c = (struct conn){.worker = w,
                       .out = BUF_INIT,
                       .rest = BUF_INIT,
                       .peer = *peer,
                       .fd = fd,
                       .timer = TIMER_NONE,
                       .wants_in = true};
    http_parser_init(&c->parser, to_body, c);
    c->shaking = w->loop->options.tls != NULL;
    if (c->shaking) c->tls = tls_open(w->loop->options.tls, fd, NULL);
    if ((c->shaking && !c->tls) || epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &e) < 0) {
        tls_close(c->tls);
        mem_free(c);
        return TARE_NOMEM;
    }
    w->n_conns++;
    conn_timer(c, c->shaking ? TIMER_HEAD : TIMER_IDLE);
    return TARE_OK;
}

static void drop_request(struct conn *c)
{
    if (c->x->more) c->x->more(c->x, false);
    exchange_drop(c->x);
    c->x = NULL;
}

/* A held exchange outlives its socket: whoever holds it brings it back, and only then both go. */
void conn_close(struct conn *c)
{
    struct worker *w = c->worker;
    conn_timer(c, TIMER_NONE);
    if (c->fd >= 0) {
        if (c->tls) tls_end(c->tls);
        tls_close(c->tls);
        c->tls = NULL;
        close(c->fd);
        c->fd = -1;
        loop_forget_address(w->loop, &c->peer);
    }
    if (c->held) {
        c->gone = true;
        return;
    }
    if (c->x) drop_request(c);
    buf_release(&c->out);
    buf_release(&c->rest);
    c->next = w->dead;
    w->dead = c;
    w->n_conns--;
}

/* Without FIN: what the kernel still holds for a client that does not read goes at once. */
static void reset(struct conn *c)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    conn_close(c);
}

/* ---- replies ---- */

static const char *date_text(struct worker *w)
{
    time_t now = time(NULL);
    struct tm tm;
    if (now != w->date_at && gmtime_r(&now, &tm)) {
        strftime(w->date, sizeof w->date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        w->date_at = now;
    }
    return w->date;
}

static void add_number(struct buf *b, uint64_t v)
{
    char digits[24];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    buf_add(b, digits + at, sizeof digits - at);
}

#define add_literal(b, text) buf_add(b, text, sizeof(text) - 1)

static void add_head(struct buf *out, const struct exchange *x, bool keep)
{
    const struct reply *r = &x->reply;
    add_literal(out, "HTTP/1.1 ");
    add_number(out, r->status);
    add_literal(out, " ");
    buf_add_str(out, reply_reason(r->status));
    add_literal(out, "\r\nDate: ");
    buf_add_str(out, date_text(x->worker));
    if (r->body.len) {
        add_literal(out, "\r\nContent-Type: ");
        buf_add_str(out, r->type);
    }
    if (!x->more) {
        add_literal(out, "\r\nContent-Length: ");
        add_number(out, r->body.len);
    }
    add_literal(out, "\r\nX-Request-Id: ");
    buf_add(out, x->id, EXCHANGE_ID_SIZE - 1);
    add_literal(out, "\r\nX-Content-Type-Options: nosniff\r\n");
    if (r->policy)
        buf_add_str(out, r->policy);
    else
        add_literal(out, "Cache-Control: no-store\r\n"
                         "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n");
    if (r->extra) buf_add_str(out, r->extra);
    if (!keep) add_literal(out, "Connection: close\r\n");
    if (keep && x->head.http10) add_literal(out, "Connection: keep-alive\r\n");
    add_literal(out, "\r\n");
}

static void count_reply(struct conn *c)
{
    struct loop_counts *n = &c->worker->loop->counts;
    atomic_fetch_add_explicit(&n->requests, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&n->replies[c->x->reply.status / 100 % 6], 1, memory_order_relaxed);
}

/* A piece of a reply without length: it ends with the connection. */
static void put_piece(struct conn *c)
{
    struct exchange *x = c->x;
    struct buf *out = &c->worker->out;
    if (!c->streaming) {
        add_head(out, x, false);
        count_reply(c);
    }
    c->streaming = true;
    buf_add(out, x->reply.body.data, x->reply.body.len);
    if (x->reply.body.failed || out->failed || x->last || c->worker->stopping) {
        drop_request(c);
        c->streaming = false;
        c->closing = true;
    }
}

/* The reply of c->x goes behind those before it; the exchange is free then. */
static void put_reply(struct conn *c)
{
    struct exchange *x = c->x;
    struct worker *w = c->worker;
    if (x->more) {
        put_piece(c);
        return;
    }
    if (x->reply.body.failed || !x->reply.status) {
        buf_clear(&x->reply.body);
        reply_problem(x, 500, "the server could not answer");
    }
    if (!x->head.keep_alive || w->stopping) c->closing = true;
    add_head(&w->out, x, !c->closing);
    if (x->head.method != METHOD_HEAD) buf_add(&w->out, x->reply.body.data, x->reply.body.len);
    if (w->out.failed) c->closing = true;
    count_reply(c);
    drop_request(c);
}

static void refuse(struct conn *c, unsigned status, const char *why)
{
    reply_problem(c->x, status, "%s", why);
    c->x->head.keep_alive = false;
    put_reply(c);
}

/* ---- writing ---- */

/* As many bytes as go at once; 0: none now, -1: the connection is gone. */
static long send_some(struct conn *c, const char *bytes, size_t n)
{
    long k;
    if (c->tls) {
        k = tls_send(c->tls, bytes, n);
        if (k > 0) return k;
        return k == TLS_WRITES ? 0 : -1;
    }
    do k = send(c->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (k < 0 && errno == EINTR);
    return k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : k;
}

/* All that is there to send; 0: more is left, -1: the connection is gone. */
static int send_all(struct conn *c, const char *bytes, size_t n, size_t *sent)
{
    while (*sent < n) {
        long k = send_some(c, bytes + *sent, n - *sent);
        if (k <= 0) return (int)k;
        *sent += (size_t)k;
        atomic_fetch_add_explicit(&c->worker->loop->counts.bytes_out, (unsigned long long)k,
                                  memory_order_relaxed);
    }
    return 1;
}

static void wait_to_write(struct conn *c)
{
    if (c->timer != TIMER_WRITE) {
        c->mark = c->sent;
        conn_timer(c, TIMER_WRITE);
    }
    c->tls_writes = false;
    watch(c, false, true);
}

/* False: nothing more can be done with it now. */
static bool flush(struct conn *c)
{
    struct buf *fresh = &c->worker->out;
    size_t sent = 0;
    int rc = c->out.len ? send_all(c, c->out.data, c->out.len, &c->sent) : 1;
    if (rc > 0 && fresh->len) rc = send_all(c, fresh->data, fresh->len, &sent);
    if (rc == 0 && fresh->len) buf_add(&c->out, fresh->data + sent, fresh->len - sent);
    bool lost = fresh->failed || c->out.failed;
    buf_clear(fresh);
    if (rc < 0 || lost) {
        reset(c);
        return false;
    }
    if (rc == 0) {
        wait_to_write(c);
        return false;
    }
    if (c->out.cap) {
        buf_release(&c->out);
        c->out = (struct buf)BUF_INIT;
        c->sent = 0;
    }
    return true;
}

/* FIN, then what still comes is read and forgotten: closing with unread input would reset the connection, and the
 * client lose the reply. */
static void linger(struct conn *c)
{
    if (c->tls) tls_end(c->tls);
    shutdown(c->fd, SHUT_WR);
    c->lingering = true;
    watch(c, true, false);
    conn_timer(c, TIMER_LINGER);
}

/* ---- reading ---- */

static bool expects_body(const struct http_head *h)
{
    return h->chunked || h->length;
}

static void on_head(struct conn *c)
{
    struct exchange *x = c->x;
    const struct loop_app *app = &c->worker->loop->options.app;
    app->admit(app->ctx, x);
    if (!expects_body(&x->head)) return;
    if (!x->reply.status && x->head.length > x->body_max)
        reply_problem(x, 413, "the body is larger than %llu bytes", (unsigned long long)x->body_max);
    if (x->reply.status) { /* the body is not worth reading */
        x->head.keep_alive = false;
        put_reply(c);
        return;
    }
    if (x->head.expects_continue) add_literal(&c->worker->out, "HTTP/1.1 100 Continue\r\n\r\n");
    x->began_ns = c->worker->now_ns;
    c->mark = 0;
    conn_timer(c, TIMER_BODY);
}

static void hold(struct conn *c)
{
    c->held = true;
    c->worker->n_held++;
    conn_timer(c, TIMER_NONE);
}

static void on_end(struct conn *c)
{
    struct exchange *x = c->x;
    const struct loop_app *app = &c->worker->loop->options.app;
    if (x->body.failed) reply_problem(x, 503, "no memory for the body");
    if (!x->reply.status) {
        x->held = false;
        app->handle(app->ctx, x);
    }
    if (!x->held) {
        put_reply(c);
        return;
    }
    hold(c);
}

static void take_step(struct conn *c, enum http_step step)
{
    if (step == PARSE_REFUSED)
        refuse(c, c->parser.status, c->parser.why);
    else if (c->x->too_large)
        refuse(c, 413, "the body is too large");
    else if (step == PARSE_HEAD)
        on_head(c);
    else if (step == PARSE_END)
        on_end(c);
}

/* What cannot be read before a reply is out is put aside. */
static void feed(struct conn *c, const char *bytes, size_t n)
{
    bool again = n > 0;
    while (again && !c->held && !c->closing && c->worker->out.len < OUT_MAX) {
        size_t used = 0;
        if (!c->x && !begin_request(c)) {
            c->closing = true;
            break;
        }
        enum http_step step = http_parse(&c->parser, bytes, n, &used);
        bytes += used;
        n -= used;
        take_step(c, step);
        again = n > 0 || (step == PARSE_HEAD && c->x);
    }
    if (n && !c->closing) buf_add(&c->rest, bytes, n);
}

static void set_read_timer(struct conn *c)
{
    uint64_t head = (uint64_t)c->worker->loop->options.times.head * 1000000;
    if (!c->x)
        conn_timer(c, TIMER_IDLE);
    else if (!c->parser.head_done && (c->timer != TIMER_HEAD || c->due_ns != c->x->began_ns + head))
        conn_timer(c, TIMER_HEAD);
}

/* The piece was sent: whoever makes them may make the next. Not before, so that a client that reads slowly has at most
 * one waiting for it. */
static void hand_back(struct conn *c)
{
    hold(c);
    watch(c, false, false);
    buf_clear(&c->x->reply.body);
    c->x->more(c->x, true);
}

/* Replies out, then on with what was put aside, until there is nothing to do. */
static void settle(struct conn *c)
{
    while (flush(c)) {
        if (c->held) return;
        if (c->streaming) {
            hand_back(c);
            return;
        }
        if (c->closing) {
            linger(c);
            return;
        }
        if (!c->rest.len) {
            watch(c, true, false);
            set_read_timer(c);
            return;
        }
        struct buf rest = c->rest;
        c->rest = (struct buf)BUF_INIT;
        feed(c, rest.data, rest.len);
        buf_release(&rest);
    }
}

/* Under the deadline of the head, from accept to its end. Where it fails the client is told why by an alert, and that
 * must not be lost by closing. */
static void shake_hands(struct conn *c)
{
    int rc = tls_shake(c->tls);
    if (rc == TLS_READS || rc == TLS_WRITES) {
        watch(c, rc == TLS_READS, rc == TLS_WRITES);
        return;
    }
    c->shaking = false;
    if (rc != 1) {
        linger(c);
        return;
    }
    watch(c, true, false);
    conn_timer(c, TIMER_IDLE);
}

/* Bytes into the thread's input; 0: none now, -1: the connection is at its end. Of TLS it reads as long as records are
 * full, for what is behind them is likely there. */
static long receive_tls(struct conn *c)
{
    enum { RECORD = 16384 };
    struct worker *w = c->worker;
    size_t n = 0;
    long k;
    do {
        k = tls_receive(c->tls, w->input + n, sizeof w->input - n);
        if (k > 0) n += (size_t)k;
    } while (k == RECORD && sizeof w->input - n >= RECORD);
    if (n) return (long)n; /* what else it said, it says again */
    c->tls_writes = k == TLS_WRITES;
    if (c->tls_writes) watch(c, false, true);
    return k == TLS_READS || k == TLS_WRITES ? 0 : -1;
}

static long receive(struct conn *c)
{
    struct worker *w = c->worker;
    if (c->tls && !c->lingering) return receive_tls(c);
    ssize_t n = recv(c->fd, w->input, sizeof w->input, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return 0;
    return n > 0 ? n : -1;
}

static void read_more(struct conn *c)
{
    struct worker *w = c->worker;
    long n = receive(c);
    if (n < 0) conn_close(c);
    if (n <= 0 || c->lingering) return; /* what comes then is forgotten */
    atomic_fetch_add_explicit(&w->loop->counts.bytes_in, (unsigned long long)n, memory_order_relaxed);
    feed(c, w->input, (size_t)n);
    if (c->rest.failed)
        reset(c);
    else
        settle(c);
}

void conn_ready(struct conn *c, uint32_t events)
{
    if (events & (EPOLLERR | EPOLLHUP)) {
        conn_close(c);
    } else if (c->shaking) {
        shake_hands(c);
    } else if (c->tls_writes) {
        c->tls_writes = false;
        watch(c, true, false);
        read_more(c);
    } else if (events & EPOLLOUT) {
        settle(c);
    } else if (c->held) {
        watch(c, false, false); /* it is read when its turn comes */
    } else {
        read_more(c);
    }
}

/* ---- held replies ---- */

void exchange_hold(struct exchange *x)
{
    x->held = true;
}

void exchange_finish(struct exchange *x)
{
    struct worker *w = x->worker;
    uint64_t one = 1;
    pthread_mutex_lock(&w->lock);
    bool first = !w->done;
    x->next = w->done;
    w->done = x;
    pthread_mutex_unlock(&w->lock);
    if (first && write(w->wake, &one, sizeof one) < 0) return; /* full: it is awake */
}

void conn_reply_now(struct exchange *x)
{
    struct conn *c = x->conn;
    c->held = false;
    c->worker->n_held--;
    if (c->gone) {
        conn_close(c);
        return;
    }
    put_reply(c);
    settle(c);
}

/* ---- time is up ---- */

static void body_overdue(struct conn *c)
{
    const struct loop_times *t = &c->worker->loop->options.times;
    uint64_t took = c->worker->now_ns - c->x->began_ns;
    bool slow = c->parser.body - c->mark < t->window;
    if (!slow && took < (uint64_t)t->body * 1000000) {
        c->mark = c->parser.body;
        conn_timer(c, TIMER_BODY);
        return;
    }
    atomic_fetch_add_explicit(&c->worker->loop->counts.closed_by_deadline, 1, memory_order_relaxed);
    refuse(c, 408, "the body came too slowly");
    settle(c);
}

void conn_overdue(struct conn *c)
{
    struct loop_counts *n = &c->worker->loop->counts;
    enum timer_kind kind = (enum timer_kind)c->timer;
    if (kind == TIMER_BODY) {
        body_overdue(c);
        return;
    }
    if (kind == TIMER_WRITE && c->sent - c->mark >= c->worker->loop->options.times.writing) {
        c->mark = c->sent;
        conn_timer(c, TIMER_WRITE);
        return;
    }
    if (kind == TIMER_HEAD || kind == TIMER_WRITE)
        atomic_fetch_add_explicit(&n->closed_by_deadline, 1, memory_order_relaxed);
    if (c->shaking) {
        conn_close(c);
    } else if (kind == TIMER_HEAD) {
        refuse(c, 408, "the head of the request came too slowly");
        settle(c);
    } else if (kind == TIMER_WRITE) {
        reset(c);
    } else {
        conn_close(c);
    }
}

void conn_stop(struct conn *c)
{
    if (c->timer == TIMER_IDLE || c->timer == TIMER_HEAD) conn_close(c);
}

/* SPDX-License-Identifier: MIT
 * loop.c - threads, listening sockets and deadlines. See loop.h for the picture; conn.c is one connection. */
#include "server/net/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"
#include "server/net/conn.h"

enum { EVENTS = 256, BACKLOG = 1024, ACCEPT_PAUSE_MS = 100, ACCEPT_BATCH = 64 };

struct address_count {
    struct address address;
    unsigned n;
};

/* ---- addresses ---- */

struct address address_of(const struct sockaddr_storage *s)
{
    struct address a = {{0}};
    if (s->ss_family == AF_INET) {
        a.bytes[10] = a.bytes[11] = 0xff;
        memcpy(a.bytes + 12, &((const struct sockaddr_in *)s)->sin_addr, 4);
    } else if (s->ss_family == AF_INET6) {
        memcpy(a.bytes, &((const struct sockaddr_in6 *)s)->sin6_addr, sizeof a.bytes);
    }
    return a;
}

static bool is_v4(const struct address *a)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(a->bytes, mapped, sizeof mapped) == 0;
}

bool address_is_loopback(const struct address *a)
{
    static const uint8_t one[ADDRESS_SIZE] = {[15] = 1};
    return is_v4(a) ? a->bytes[12] == 127 : memcmp(a->bytes, one, sizeof one) == 0;
}

void address_text(const struct address *a, char out[INET6_ADDRSTRLEN])
{
    bool v4 = is_v4(a);
    if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a->bytes + 12 : a->bytes, out, INET6_ADDRSTRLEN)) out[0] = 0;
}

struct address address_group(const struct address *a)
{
    struct address g = *a;
    if (!is_v4(a)) memset(g.bytes + 8, 0, 8);
    return g;
}

/* False: too many. The table is short (connections_max rows at most) and only looked at when one comes or goes. */
static bool count_address(struct loop *l, const struct address *a)
{
    struct address g = address_group(a);
    unsigned limit = l->options.per_address_max;
    bool fits = atomic_load(&l->counts.connections) < l->options.connections_max;
    size_t i = 0;
    pthread_mutex_lock(&l->lock);
    while (i < l->n_addresses && memcmp(&l->addresses[i].address, &g, sizeof g) != 0) i++;
    if (i < l->n_addresses)
        fits = fits && (!limit || l->addresses[i].n < limit);
    else
        fits = fits && i < l->options.connections_max;
    if (fits) {
        if (i == l->n_addresses) l->addresses[l->n_addresses++] = (struct address_count){g, 0};
        l->addresses[i].n++;
        atomic_fetch_add(&l->counts.connections, 1);
    }
    pthread_mutex_unlock(&l->lock);
    return fits;
}

void loop_forget_address(struct loop *l, const struct address *a)
{
    struct address g = address_group(a);
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->n_addresses; i++)
        if (memcmp(&l->addresses[i].address, &g, sizeof g) == 0) {
            if (--l->addresses[i].n == 0) l->addresses[i] = l->addresses[--l->n_addresses];
            break;
        }
    pthread_mutex_unlock(&l->lock);
    atomic_fetch_sub(&l->counts.connections, 1);
}

/* ---- deadlines ---- */

static uint64_t length_ns(const struct worker *w, enum timer_kind kind)
{
    const struct loop_times *t = &w->loop->options.times;
    const unsigned ms[TIMERS] = {[TIMER_HEAD] = t->head,
                                 [TIMER_BODY] = t->window,
                                 [TIMER_WRITE] = t->writing,
                                 [TIMER_IDLE] = t->idle,
                                 [TIMER_LINGER] = t->linger};
    return (uint64_t)ms[kind] * 1000000;
}

void conn_timer(struct conn *c, enum timer_kind kind)
{
    struct worker *w = c->worker;
    if (c->timer != TIMER_NONE) {
        struct timer_list *old = &w->timers[c->timer];
        *(c->prev ? &c->prev->next : &old->first) = c->next;
        *(c->next ? &c->next->prev : &old->last) = c->prev;
    }
    c->timer = (uint8_t)kind;
    c->prev = c->next = NULL;
    if (kind == TIMER_NONE) return;
    struct timer_list *list = &w->timers[kind];
    c->due_ns = w->now_ns + length_ns(w, kind);
    c->prev = list->last;
    *(list->last ? &list->last->next : &list->first) = c;
    list->last = c;
}

static int wait_ms(const struct worker *w)
{
    uint64_t due = UINT64_MAX;
    for (int k = 0; k < TIMERS; k++)
        if (w->timers[k].first && w->timers[k].first->due_ns < due) due = w->timers[k].first->due_ns;
    if (!w->accepting && !w->stopping && w->accept_again_ns < due) due = w->accept_again_ns;
    if (w->stopping && w->stop_by_ns < due) due = w->stop_by_ns;
    if (due == UINT64_MAX) return -1;
    if (due <= w->now_ns) return 0;
    uint64_t ms = (due - w->now_ns) / 1000000 + 1;
    return ms > 60000 ? 60000 : (int)ms;
}

static void end_overdue(struct worker *w)
{
    for (int k = 0; k < TIMERS; k++)
        while (w->timers[k].first && w->timers[k].first->due_ns <= w->now_ns)
            conn_overdue(w->timers[k].first);
}

/* ---- accepting ---- */

static void listen_again(struct worker *w, bool on)
{
    uint32_t one_of_us = w->loop->options.listener ? EPOLLEXCLUSIVE : 0;
    struct epoll_event e = {.events = EPOLLIN | one_of_us, .data.ptr = NULL};
    if (on == w->accepting) return;
    epoll_ctl(w->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, w->listener, &e);
    w->accepting = on;
}

static void set_up_socket(int fd)
{
    int one = 1, room = SEND_BUFFER; /* else a slow reader costs the kernel megabytes */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
}

static void take_connection(struct worker *w, int fd, const struct sockaddr_storage *from)
{
    static const char full[] =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    struct loop *l = w->loop;
    struct address peer = address_of(from);
    if (!count_address(l, &peer)) {
        atomic_fetch_add(&l->counts.refused, 1);
        if (!l->options.tls && send(fd, full, sizeof full - 1, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
            shutdown(fd, SHUT_WR);
        close(fd);
        return;
    }
    set_up_socket(fd);
    if (conn_open(w, fd, &peer) != TARE_OK) {
        loop_forget_address(l, &peer);
        close(fd);
        return;
    }
    atomic_fetch_add(&l->counts.accepted, 1);
}

/* Without a descriptor to spare nothing can be accepted: those who wait stay in the kernel's queue, and the connections
 * that are there are served. */
static void accept_some(struct worker *w)
{
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        struct sockaddr_storage from = {0};
        socklen_t size = sizeof from;
        int fd = accept4(w->listener, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            take_connection(w, fd, &from);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            w->accept_again_ns = w->now_ns + (uint64_t)ACCEPT_PAUSE_MS * 1000000;
            listen_again(w, false);
        }
        if (errno != EINTR && errno != ECONNABORTED) return;
    }
}

/* ---- a thread ---- */

static void bring_back_held(struct worker *w)
{
    uint64_t count;
    struct exchange *in_order = NULL, *x;
    if (read(w->wake, &count, sizeof count) < 0) count = 0;
    pthread_mutex_lock(&w->lock);
    struct exchange *done = w->done;
    w->done = NULL;
    pthread_mutex_unlock(&w->lock);
    while ((x = done)) {
        done = x->next;
        x->next = in_order;
        in_order = x;
    }
    while ((x = in_order)) {
        in_order = x->next;
        conn_reply_now(x);
    }
}

/* Half-read heads and idle connections go at once; bodies, held replies and writing go on until stop_by_ns. */
static void begin_stop(struct worker *w)
{
    w->stopping = true;
    w->stop_by_ns = w->now_ns + (uint64_t)w->loop->options.times.stopping * 1000000;
    listen_again(w, false);
    close(w->listener);
    w->listener = -1;
    for (int k = 0; k < TIMERS; k++)
        for (struct conn *c = w->timers[k].first, *next; c; c = next) {
            next = c->next;
            conn_stop(c);
        }
}

static void free_dead(struct worker *w)
{
    for (struct conn *c; (c = w->dead);) {
        w->dead = c->next;
        mem_free(c);
    }
}

static void close_all(struct worker *w)
{
    for (int k = 0; k < TIMERS; k++)
        while (w->timers[k].first) conn_close(w->timers[k].first);
    free_dead(w);
}

static void turn(struct worker *w)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(w->epoll, events, EVENTS, wait_ms(w));
    w->now_ns = clock_raw_ns();
    for (int i = 0; i < n; i++) {
        void *what = events[i].data.ptr;
        if (!what)
            accept_some(w);
        else if (what == w)
            bring_back_held(w);
        else if (((struct conn *)what)->fd >= 0)
            conn_ready(what, events[i].events);
    }
    end_overdue(w);
    free_dead(w);
}

static void *serve(void *ctx)
{
    struct worker *w = ctx;
    for (;;) {
        turn(w);
        if (!w->stopping && atomic_load(&w->loop->stop)) begin_stop(w);
        free_dead(w);
        if (w->stopping && (!w->n_conns || w->now_ns >= w->stop_by_ns) && !w->n_held) break;
        if (!w->stopping && !w->accepting && w->now_ns >= w->accept_again_ns) listen_again(w, true);
    }
    close_all(w);
    return NULL;
}

/* ---- opening ---- */

static tare_status open_listener(struct worker *w, tare_error *err)
{
    struct loop *l = w->loop;
    struct sockaddr_storage *at = &l->options.at;
    socklen_t size = at->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    struct address a = address_of(at);
    char text[INET6_ADDRSTRLEN];
    int one = 1;
    address_text(&a, text);
    w->listener = socket(at->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (w->listener < 0) return error_errno(err, "no socket to listen on");
    setsockopt(w->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (w != l->workers) setsockopt(w->listener, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    /* The first one takes the port for itself: a second server on it must be told, not share its clients. */
    if (w == l->workers && bind(w->listener, (struct sockaddr *)at, size) < 0)
        return error_errno(err, "cannot listen on %s port %u", text,
                           (unsigned)ntohs(((struct sockaddr_in *)at)->sin_port));
    if (w == l->workers) {
        getsockname(w->listener, (struct sockaddr *)at, &size);
        setsockopt(w->listener, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    } else if (bind(w->listener, (struct sockaddr *)at, size) < 0) {
        return error_errno(err, "cannot listen on %s a second time", text);
    }
    if (listen(w->listener, BACKLOG) < 0) return error_errno(err, "cannot listen on %s", text);
    return TARE_OK;
}

static tare_status share_listener(struct worker *w, tare_error *err)
{
    w->listener = fcntl(w->loop->options.listener, F_DUPFD_CLOEXEC, 0);
    return w->listener < 0 ? error_errno(err, "no descriptor for a thread of the server") : TARE_OK;
}

static tare_status open_worker(struct loop *l, struct worker *w, tare_error *err)
{
    w->loop = l;
    w->epoll = w->listener = w->wake = -1;
    w->out = (struct buf)BUF_INIT;
    w->now_ns = clock_raw_ns();
    pthread_mutex_init(&w->lock, NULL);
    if (getrandom(&w->id_base, sizeof w->id_base, 0) < 0) return error_errno(err, "no random bytes");
    tare_status s = l->options.listener ? share_listener(w, err) : open_listener(w, err);
    if (s != TARE_OK) return s;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = w};
    if (w->epoll < 0 || w->wake < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->wake, &e) < 0)
        return error_errno(err, "no epoll for a thread of the server");
    listen_again(w, true);
    return TARE_OK;
}

static tare_status start_workers(struct loop *l, tare_error *err)
{
    sigset_t all, was;
    int rc = 0;
    unsigned n = 0;
    sigfillset(&all); /* signals are for the thread that waits for them */
    pthread_sigmask(SIG_SETMASK, &all, &was);
    while (n < l->n_workers && rc == 0) {
        rc = pthread_create(&l->workers[n].thread, NULL, serve, &l->workers[n]);
        if (rc == 0) n++;
    }
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    l->n_started = n;
    errno = rc;
    return rc ? error_errno(err, "no thread for the server") : TARE_OK;
}

tare_status loop_open(struct loop **out, const struct loop_options *o, tare_error *err)
{
    struct loop *l = mem_new(1, sizeof *l);
    tare_status s = TARE_OK;
    if (!l) return error_nomem(err, "the server");
    l->options = *o;
    pthread_mutex_init(&l->lock, NULL);
    l->workers = mem_new(o->threads, sizeof *l->workers);
    l->addresses = mem_new(o->connections_max, sizeof *l->addresses);
    if (!l->workers || !l->addresses) s = error_nomem(err, "the threads of the server");
    for (unsigned i = 0; i < o->threads && s == TARE_OK; i++) {
        l->n_workers++;
        s = open_worker(l, &l->workers[i], err);
    }
    l->port =
        ntohs(((struct sockaddr_in *)&l->options.at)->sin_port); /* of both families at the same place */
    *out = l;                                                    /* before the first request can ask for it */
    if (s == TARE_OK) s = start_workers(l, err);
    if (s != TARE_OK) {
        *out = NULL;
        loop_close(l);
    }
    return s;
}

void loop_stop(struct loop *l)
{
    uint64_t one = 1;
    atomic_store(&l->stop, true);
    for (unsigned i = 0; i < l->n_started; i++)
        if (write(l->workers[i].wake, &one, sizeof one) < 0) continue; /* full: it is awake */
    for (unsigned i = 0; i < l->n_started; i++) pthread_join(l->workers[i].thread, NULL);
    l->n_started = 0;
}

static void close_worker(struct worker *w)
{
    const int fds[] = {w->epoll, w->listener, w->wake};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0) close(fds[i]);
    for (struct exchange *x; (x = w->spare);) {
        w->spare = x->next;
        buf_release(&x->body);
        reply_release(&x->reply);
        mem_free(x);
    }
    buf_release(&w->out);
    pthread_mutex_destroy(&w->lock);
}

void loop_close(struct loop *l)
{
    if (!l) return;
    if (l->n_started) loop_stop(l);
    for (unsigned i = 0; l->workers && i < l->n_workers; i++) close_worker(&l->workers[i]);
    pthread_mutex_destroy(&l->lock);
    mem_free(l->addresses);
    mem_free(l->workers);
    mem_free(l);
}

unsigned loop_port(const struct loop *l)
{
    return l->port;
}

const struct loop_counts *loop_counts(const struct loop *l)
{
    return &l->counts;
}

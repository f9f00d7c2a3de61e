/* SPDX-License-Identifier: MIT
 * ref_server.c - a small HTTP/1.1 server of known behaviour. One thread, epoll. What it did is written as a line of
 * JSON per request: when its last byte was read, when each write was done and how many content events it ended, all in
 * ns of CLOCK_MONOTONIC_RAW.
 * usage: ref_server [--host H] [--port N] [--unix PATH] [--log FILE] [--seconds N] [--seed N]
 * Prints "port N"; ends after --seconds (300), on SIGTERM, or with its parent. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ref_server.h"

enum { BODY_MOST = 64 << 20 };

struct conn {
    int fd;
    char *in;
    size_t n_in, in_room;
    bool busy, closing; /* a script is being played; the other side is gone */
    bool blocked;       /* waits until the socket takes more */
    struct script play;
    size_t written; /* of the step under way */
    char path[512], id[64];
    uint64_t number, received;
    uint64_t *wrote;   /* of each step */
    size_t at;         /* in the heap; from 1, 0: not there */
    struct conn *dead; /* the next of those that ended in this round */
    bool ended;
};

struct server {
    int poll, listener;
    FILE *log;
    uint64_t n_requests, ends;
    struct server_state shared;
    struct conn **heap; /* from 1; by the time of the next step */
    size_t n_heap, heap_room;
    struct conn *dead; /* events of this round may still name them */
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* ---- who is due next ---- */

static uint64_t due_of(const struct conn *c)
{
    return c->play.steps[c->play.next].at;
}

static void heap_put(struct server *s, size_t at, struct conn *c)
{
    s->heap[at] = c;
    c->at = at;
}

static void heap_mend(struct server *s, struct conn *c)
{
    size_t at = c->at;
    while (at > 1 && due_of(s->heap[at / 2]) > due_of(c)) {
        heap_put(s, at, s->heap[at / 2]);
        at /= 2;
    }
    for (;;) {
        size_t down = 2 * at;
        if (down > s->n_heap) break;
        if (down < s->n_heap && due_of(s->heap[down + 1]) < due_of(s->heap[down])) down++;
        if (due_of(s->heap[down]) >= due_of(c)) break;
        heap_put(s, at, s->heap[down]);
        at = down;
    }
    heap_put(s, at, c);
}

static void heap_add(struct server *s, struct conn *c)
{
    if (c->at) return;
    if (s->n_heap + 2 > s->heap_room) {
        s->heap_room = s->heap_room ? 2 * s->heap_room : 1024;
        s->heap = realloc(s->heap, s->heap_room * sizeof *s->heap);
        if (!s->heap) abort();
    }
    heap_put(s, ++s->n_heap, c);
    heap_mend(s, c);
}

static void heap_remove(struct server *s, struct conn *c)
{
    if (!c->at) return;
    struct conn *last = s->heap[s->n_heap--];
    size_t at = c->at;
    c->at = 0;
    if (last == c) return;
    heap_put(s, at, last);
    heap_mend(s, last);
}

/* ---- the record ---- */

static void write_down(struct server *s, struct conn *c, const char *end)
{
    const struct script *p = &c->play;
    if (!s->log || !c->busy) return;
    fprintf(s->log,
            "{\"n\":%llu,\"path\":\"%s\",\"id\":\"%s\",\"received\":%llu,\"tokens\":%llu,\"end\":\"%s\"",
            (unsigned long long)c->number, c->path, c->id, (unsigned long long)c->received,
            (unsigned long long)p->tokens, end);
    static const char *const lists[] = {"due", "wrote", "events"};
    for (int which = 0; which < 3; which++) {
        fprintf(s->log, ",\"%s\":[", lists[which]);
        for (size_t i = 0; i < p->next; i++) {
            const uint64_t value[] = {p->steps[i].at, c->wrote[i], p->steps[i].events};
            fprintf(s->log, "%s%llu", i ? "," : "", (unsigned long long)value[which]);
        }
        fputc(']', s->log);
    }
    fputs("}\n", s->log);
}

static void forget_script(struct conn *c)
{
    free(c->play.bytes);
    free(c->play.steps);
    free(c->wrote);
    c->play = (struct script){0};
    c->wrote = NULL;
    c->written = 0;
    c->busy = c->blocked = false;
}

static void conn_end(struct server *s, struct conn *c, const char *why)
{
    write_down(s, c, why);
    heap_remove(s, c);
    forget_script(c);
    close(c->fd);
    c->ended = true;
    c->dead = s->dead;
    s->dead = c;
}

static void bury(struct server *s)
{
    while (s->dead) {
        struct conn *c = s->dead;
        s->dead = c->dead;
        free(c->in);
        free(c);
    }
}

/* ---- playing ---- */

/* 1: done; 0: the socket takes no more for now; -1: it is broken. */
static int write_step(struct conn *c, const struct step *step)
{
    while (c->written < step->n) {
        ssize_t n = send(c->fd, c->play.bytes + step->from + c->written, step->n - c->written, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN ? 0 : -1;
        c->written += (size_t)n;
    }
    c->written = 0;
    return 1;
}

/* What is no write: the connection is gone when this comes back false. */
static bool act_out(struct server *s, struct conn *c, enum act act)
{
    struct linger hard = {1, 0};
    if (act == ACT_SHUT) {
        shutdown(c->fd, SHUT_WR);
        return true;
    }
    if (act == ACT_RESET) setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    if (act == ACT_EXIT) stopped = 1;
    conn_end(s, c, act == ACT_RESET ? "reset" : "closed");
    return false;
}

static bool take_request(struct server *s, struct conn *c);

/* All steps that are due. False: the connection is gone. */
static bool play(struct server *s, struct conn *c)
{
    struct script *p = &c->play;
    while (p->next < p->n_steps && p->steps[p->next].at <= now_ns()) {
        const struct step *step = &p->steps[p->next];
        bool writes = step->act == ACT_WRITE || step->act == ACT_ENDLESS;
        int said = writes ? write_step(c, step) : 1;
        if (said < 0) {
            conn_end(s, c, "peer");
            return false;
        }
        c->blocked = said == 0;
        if (c->blocked) {
            heap_remove(s, c);
            return true;
        }
        c->wrote[p->next] = now_ns();
        if (!writes && !act_out(s, c, step->act)) return false;
        if (step->act == ACT_ENDLESS) { /* again in the next round */
            heap_add(s, c);
            return true;
        }
        p->next++;
    }
    if (p->next < p->n_steps) {
        if (c->at) heap_mend(s, c);
        heap_add(s, c);
        return true;
    }
    heap_remove(s, c);
    if (!p->n_steps || p->steps[p->n_steps - 1].act == ACT_SHUT) return true; /* silence */
    if (p->close || c->closing) {
        conn_end(s, c, "done");
        return false;
    }
    write_down(s, c, "done");
    forget_script(c);
    return take_request(s, c);
}

/* ---- requests ---- */

static void tell_id(struct conn *c, const struct request *r)
{
    const char *at = r->query ? strstr(r->query, "id=") : NULL;
    if (!at) at = strstr(r->body, "\"id=");
    snprintf(c->id, sizeof c->id, "%.*s", at ? (int)strcspn(at + 3, "&\" ") : 0, at ? at + 3 : "");
    snprintf(c->path, sizeof c->path, "%s", r->path);
    for (char *p = c->path; *p; p++)
        if (*p == '"' || *p == '\\' || *p < ' ') *p = '?';
    for (char *p = c->id; *p; p++)
        if (*p == '"' || *p == '\\' || *p < ' ') *p = '?';
}

/* "POST /a?b HTTP/1.1": each part NUL-terminated in place. */
static void split_line(char *head, struct request *r)
{
    char *rest = head + strcspn(head, "\r\n");
    char saved = *rest;
    *rest = 0;
    r->method = head;
    r->path = r->query = "";
    char *at = strchr(head, ' ');
    if (at) {
        *at++ = 0;
        r->path = at;
        at[strcspn(at, " ")] = 0;
        char *query = strchr(at, '?');
        if (query) {
            *query = 0;
            r->query = query + 1;
        }
    }
    *rest = saved;
    r->head = rest;
}

static void begin(struct server *s, struct conn *c, const struct request *r)
{
    tell_id(c, r);
    c->number = r->number;
    c->received = r->received;
    c->busy = true;
    behave(&s->shared, r, &c->play);
    c->wrote = calloc(c->play.n_steps + 1, sizeof *c->wrote);
    if (!c->wrote) abort();
}

/* The next request of what was read, if it is there. False: the connection is gone. */
static bool take_request(struct server *s, struct conn *c)
{
    if (c->busy || !c->n_in) return true;
    c->in[c->n_in] = 0;
    char *end = strstr(c->in, "\r\n\r\n");
    if (!end) return true;
    size_t n_head = (size_t)(end - c->in) + 4, n_body = 0;
    *end = 0;
    const char *length = strcasestr(c->in, "\ncontent-length:");
    if (length) n_body = strtoul(length + 16, NULL, 10);
    if (n_body > BODY_MOST) {
        conn_end(s, c, "too long");
        return false;
    }
    if (c->n_in < n_head + n_body) {
        *end = '\r';
        return true;
    }
    char saved = c->in[n_head + n_body];
    c->in[n_head + n_body] = 0;
    struct request r = {
        .number = s->n_requests++, .received = now_ns(), .body = c->in + n_head, .n_body = n_body};
    split_line(c->in, &r);
    begin(s, c, &r);
    c->in[n_head + n_body] = saved;
    c->n_in -= n_head + n_body;
    memmove(c->in, c->in + n_head + n_body, c->n_in);
    return play(s, c);
}

static void read_some(struct server *s, struct conn *c)
{
    for (;;) {
        if (c->in_room - c->n_in < 4096) {
            c->in_room = c->in_room ? 2 * c->in_room : 8192;
            c->in = realloc(c->in, c->in_room);
            if (!c->in) abort();
        }
        size_t room = c->in_room - c->n_in - 1;
        ssize_t n = recv(c->fd, c->in + c->n_in, room, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n <= 0) {
            conn_end(s, c, "peer");
            return;
        }
        c->n_in += (size_t)n;
    }
    if (c->n_in > BODY_MOST) {
        conn_end(s, c, "too long");
        return;
    }
    take_request(s, c);
}

static void accept_all(struct server *s)
{
    for (;;) {
        int on = 1, fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct conn *c = calloc(1, sizeof *c);
        if (!c) abort();
        c->fd = fd;
        struct epoll_event e = {EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.ptr = c}};
        epoll_ctl(s->poll, EPOLL_CTL_ADD, fd, &e);
    }
}

static void run_due(struct server *s)
{
    /* Endless bodies are always due: one round is enough. */
    for (size_t n = s->n_heap; n && s->n_heap && due_of(s->heap[1]) <= now_ns(); n--) play(s, s->heap[1]);
}

static void serve(struct server *s)
{
    struct epoll_event events[256];
    while (!stopped && now_ns() < s->ends) {
        uint64_t now = now_ns(), next = s->n_heap ? due_of(s->heap[1]) : s->ends;
        uint64_t wait = next > now ? next - now : 0;
        struct timespec t = {(time_t)(wait / 1000000000), (long)(wait % 1000000000)};
        int n = epoll_pwait2(s->poll, events, 256, &t, NULL);
        run_due(s);
        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;
            if (!c) accept_all(s);
            if (c && !c->ended && events[i].events & ~(uint32_t)EPOLLOUT) read_some(s, c);
            if (c && !c->ended && c->blocked) play(s, c);
        }
        bury(s);
    }
}

/* ---- start ---- */

static int listen_tcp(const char *host, unsigned port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    bool is_v4 = inet_pton(AF_INET, host, &v4.sin_addr) == 1;
    if (!is_v4 && inet_pton(AF_INET6, host, &v6.sin6_addr) != 1) return -1;
    int on = 1, fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    int bad =
        is_v4 ? bind(fd, (struct sockaddr *)&v4, sizeof v4) : bind(fd, (struct sockaddr *)&v6, sizeof v6);
    return bad || listen(fd, 4096) ? -1 : fd;
}

static int listen_unix(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    return bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 4096) ? -1 : fd;
}

static unsigned port_of(int fd)
{
    struct sockaddr_storage at;
    socklen_t n = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &n)) return 0;
    if (at.ss_family == AF_INET) return ntohs(((struct sockaddr_in *)&at)->sin_port);
    return at.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&at)->sin6_port) : 0;
}

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0) return argv[i + 1];
    return otherwise;
}

int main(int argc, char **argv)
{
    const char *log = option(argc, argv, "--log", NULL), *path = option(argc, argv, "--unix", NULL);
    struct server s = {.poll = epoll_create1(EPOLL_CLOEXEC)};
    struct rlimit files;
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_TIMERSLACK, 1UL);
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    s.ends = now_ns() + strtoul(option(argc, argv, "--seconds", "300"), NULL, 10) * UINT64_C(1000000000);
    s.shared.seed = strtoul(option(argc, argv, "--seed", "1"), NULL, 10);
    s.listener = path ? listen_unix(path)
                      : listen_tcp(option(argc, argv, "--host", "127.0.0.1"),
                                   (unsigned)strtoul(option(argc, argv, "--port", "0"), NULL, 10));
    if (log) s.log = fopen(log, "w");
    if (s.listener < 0 || s.poll < 0 || (log && !s.log)) {
        perror("ref_server");
        return 2;
    }
    struct epoll_event e = {EPOLLIN, {.ptr = NULL}};
    epoll_ctl(s.poll, EPOLL_CTL_ADD, s.listener, &e);
    printf("port %u\n", port_of(s.listener));
    fflush(stdout);
    serve(&s);
    if (s.log) fclose(s.log);
    return 0;
}

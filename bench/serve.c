/* SPDX-License-Identifier: MIT
 * serve.c - what a request costs `tare serve`: processor time of the server (/proc/PID/task/.../schedstat) over the
 * answers that a keep-alive client got, least and median of rounds of a second. Rates depend on who else is running.
 * At last a siege: clients that drip or do nothing, and what one that does neither notices of them.
 * usage: serve TARE [ROUNDS [NAME]]: with a name only rows of plain HTTP that have it in theirs */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/stats.h"
#include "core/ulid.h"
#include "run/run.h"
#include "tls/tls.h"

enum { CONNECTIONS_MAX = 256, ROUNDS_MAX = 100 };

struct target {
    pid_t pid;
    int port;
    char folder[300], token[200];
    struct tls_context *trust; /* of https; NULL: http */
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- the server ---- */

static FILE *start(const char *const *argv, pid_t *pid)
{
    int out[2];
    if (pipe(out) < 0 || (*pid = fork()) < 0) die("start");
    if (*pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(out[1], 1);
        dup2(null, 2);
        close(out[0]);
        execv(argv[0], (char **)(uintptr_t)argv);
        _exit(127);
    }
    close(out[1]);
    return fdopen(out[0], "r");
}

static void first_line(const char *const *argv, pid_t *pid, char *line, size_t size)
{
    FILE *f = start(argv, pid);
    if (!f || !fgets(line, (int)size, f)) die("no answer of tare");
    line[strcspn(line, "\n")] = 0;
}

/* For https: certificate and key in a folder of its own. */
static void make_certificate(struct target *t, char *certificate, char *key, size_t size)
{
    char command[2000];
    tare_error err = TARE_ERROR_INIT;
    snprintf(certificate, size, "%s/cert.pem", t->folder);
    snprintf(key, size, "%s/key.pem", t->folder);
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=bench "
             "-addext subjectAltName=IP:127.0.0.1 -keyout %s -out %s 2>/dev/null",
             key, certificate);
    if (system(command) != 0) die("openssl");
    if (tls_trust(&t->trust, certificate, &err) != TARE_OK) die(err.text);
}

static void start_server(const char *tare, struct target *t, bool https)
{
    char line[200], data[400], certificate[400], key[400];
    pid_t helper;
    snprintf(t->folder, sizeof t->folder, "tare-bench-serve.XXXXXX");
    if (!mkdtemp(t->folder)) die("mkdtemp");
    snprintf(data, sizeof data, "%s/data", t->folder);
    const char *const token[] = {tare, "token", "new", "--scope", "read,ingest", "--data", data, NULL};
    const char *const serve[] = {tare,
                                 "serve",
                                 "--port",
                                 "0",
                                 "--data",
                                 data,
                                 "--rate",
                                 "0",
                                 "--per-address",
                                 "0",
                                 "--connections",
                                 "8192",
                                 https ? "--tls-cert" : NULL,
                                 certificate,
                                 "--tls-key",
                                 key,
                                 NULL};
    if (https) make_certificate(t, certificate, key, sizeof key);
    first_line(token, &helper, t->token, sizeof t->token);
    waitpid(helper, NULL, 0);
    first_line(serve, &t->pid, line, sizeof line);
    t->port = (int)strtol(strrchr(line, ':') + 1, NULL, 10);
}

/* Nanoseconds that all its threads were on a processor. */
static uint64_t cpu_ns(pid_t pid)
{
    char path[100];
    uint64_t sum = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char file[400], text[100] = "";
        snprintf(file, sizeof file, "%s/%s/schedstat", path, e->d_name);
        int fd = open(file, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && read(fd, text, sizeof text - 1) > 0) sum += strtoull(text, NULL, 10);
        if (fd >= 0) close(fd);
    }
    if (d) closedir(d);
    return sum;
}

static uint64_t resident_kb(pid_t pid)
{
    char path[100], line[200];
    uint64_t kb = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmRSS:", 6) == 0) kb = strtoull(line + 6, NULL, 10);
    if (f) fclose(f);
    return kb;
}

/* ---- the client: one request under way on each connection ---- */

struct kind {
    const char *name, *path;
    unsigned connections;
    bool posts;
    double goal_us;
    unsigned batch; /* samples of a batch of metrics; 0: a run */
    int compact;
};

struct client {
    int fd;
    struct tls *tls;
    size_t n;
    char in[16384];
};

static char document[2][8192];            /* as `tare bench` writes it, and without white space */
static size_t document_size[2], id_at[2]; /* where its id stands */

static void make_document(void)
{
    struct run r;
    struct buf text = BUF_INIT;
    if (run_init(&r, "bench", NULL) < 0) die("run_init");
    r.subject.type = "command";
    r.subject.name = "bench of the server";
    struct run_case *c = run_add_case(&r, "one");
    if (!c || run_write(&r, &text, NULL) < 0 || text.len >= sizeof document[0]) die("run_write");
    memcpy(document[0], text.data, text.len + 1);
    document_size[0] = text.len;
    for (size_t i = 0, quoted = 0; i < text.len; i++) {
        quoted ^= text.data[i] == '"';
        if (quoted || !strchr(" \n", text.data[i])) document[1][document_size[1]++] = text.data[i];
    }
    for (int i = 0; i < 2; i++) id_at[i] = (size_t)(strstr(document[i], r.id) - document[i]);
    buf_release(&text);
    run_release(&r);
}

/* Samples of a machine with so many series, at one moment. */
static size_t make_batch(unsigned n, char *out, size_t size)
{
    static uint64_t number;
    char id[ULID_SIZE];
    uint64_t now = clock_unix_ns() / 1000000;
    if (ulid_new(id, NULL) < 0) die("ulid");
    int used = snprintf(out, size, "{\"batch\":\"%s\",\"host\":\"host%llu\",\"at\":%llu,\"samples\":[", id,
                        (unsigned long long)(number++ % 64), (unsigned long long)now);
    for (unsigned i = 0; i < n; i++)
        used += snprintf(out + used, size - (size_t)used,
                         "%s{\"name\":\"cpu.busy\",\"label\":\"cpu%u\",\"value\":%u.%03u}", i ? "," : "", i,
                         (unsigned)(number % 100000), (i * 37 + (unsigned)number) % 1000);
    return (size_t)(used + snprintf(out + used, size - (size_t)used, "]}"));
}

static size_t make_request(const struct target *t, const struct kind *k, char *out, size_t size)
{
    int n = snprintf(out, size, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n",
                     k->posts ? "POST" : "GET", k->path, t->token);
    if (!k->posts) return (size_t)(n + snprintf(out + n, size - (size_t)n, "\r\n"));
    static char batch[12288];
    size_t length = k->batch ? make_batch(k->batch, batch, sizeof batch) : document_size[k->compact];
    n += snprintf(out + n, size - (size_t)n, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                  length);
    if (k->batch) {
        memcpy(out + n, batch, length);
        return (size_t)n + length;
    }
    char id[ULID_SIZE];
    if (ulid_new(id, NULL) < 0) die("ulid");
    memcpy(document[k->compact] + id_at[k->compact], id, ULID_LEN);
    memcpy(out + n, document[k->compact], length);
    return (size_t)n + length;
}

static void send_one(const struct target *t, const struct kind *k, struct client *c)
{
    static char request[16384];
    size_t n = make_request(t, k, request, sizeof request);
    long sent = c->tls ? tls_send(c->tls, request, n) : send(c->fd, request, n, MSG_NOSIGNAL);
    if (sent != (long)n) die("send");
    c->n = 0;
}

/* Whether a whole reply is there. */
static bool take_reply(struct client *c, const struct kind *k)
{
    size_t room = sizeof c->in - 1 - c->n;
    long n = c->tls ? tls_receive(c->tls, c->in + c->n, room) : recv(c->fd, c->in + c->n, room, 0);
    if (c->tls && n == TLS_READS) return false; /* a ticket */
    if (n <= 0) die("recv");
    c->n += (size_t)n;
    c->in[c->n] = 0;
    char *end = strstr(c->in, "\r\n\r\n"), *length = strstr(c->in, "Content-Length: ");
    if (!end || !length) return false;
    if (strncmp(c->in + 9, k->posts ? "201" : "200", 3) != 0) {
        fprintf(stderr, "refused: %s\n", c->in);
        exit(1);
    }
    return c->n >= (size_t)(end + 4 - c->in) + strtoul(length + 16, NULL, 10);
}

static uint64_t load(const struct target *t, const struct kind *k, struct client *clients, int epoll,
                     double seconds)
{
    uint64_t done = 0, end = clock_raw_ns() + (uint64_t)(seconds * 1e9);
    unsigned under_way = k->connections;
    for (unsigned i = 0; i < k->connections; i++) send_one(t, k, &clients[i]);
    while (under_way) {
        struct epoll_event events[CONNECTIONS_MAX];
        int n = epoll_wait(epoll, events, CONNECTIONS_MAX, 10000);
        if (n <= 0) die("the server is silent");
        bool on = clock_raw_ns() < end;
        for (int i = 0; i < n; i++) {
            struct client *c = events[i].data.ptr;
            if (!take_reply(c, k)) continue;
            done++;
            if (on)
                send_one(t, k, c);
            else
                under_way--;
        }
    }
    return done;
}

static void open_client(const struct target *t, struct client *c)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)t->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(c->fd, (struct sockaddr *)&at, sizeof at) < 0) die("connect");
    c->tls = t->trust ? tls_open(t->trust, c->fd, "127.0.0.1") : NULL;
    for (int rc = 0; t->trust && rc != 1;)
        if ((rc = tls_shake(c->tls)) < TLS_WRITES) die("handshake");
}

static void close_client(struct client *c)
{
    tls_close(c->tls);
    close(c->fd);
}

/* Connections that come, shake hands and go: what one costs the server. */
static void measure_handshakes(const struct target *t, unsigned rounds)
{
    double us[ROUNDS_MAX];
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t cpu = cpu_ns(t->pid), end = clock_raw_ns() + UINT64_C(1000000000), n = 0;
        for (; clock_raw_ns() < end; n++) {
            static struct client c;
            open_client(t, &c);
            close_client(&c);
        }
        us[i] = (double)(cpu_ns(t->pid) - cpu) / 1e3 / (double)n;
    }
    stats_sort(us, rounds);
    printf("%-44s %9.3f us     no goal (median %.1f)\n", "serve: https: a connection, P-256", us[0],
           us[rounds / 2]);
}

static void measure(const struct target *t, const struct kind *k, unsigned rounds)
{
    static struct client clients[CONNECTIONS_MAX];
    double us[ROUNDS_MAX], best = 0;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    for (unsigned i = 0; i < k->connections; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &clients[i]};
        open_client(t, &clients[i]);
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, clients[i].fd, &e) < 0) die("epoll");
    }
    load(t, k, clients, epoll, 0.2);
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t cpu = cpu_ns(t->pid), from = clock_raw_ns();
        uint64_t n = load(t, k, clients, epoll, 1);
        us[i] = (double)(cpu_ns(t->pid) - cpu) / 1e3 / (double)n;
        double rate = (double)n * 1e9 / (double)(clock_raw_ns() - from);
        if (rate > best) best = rate;
    }
    for (unsigned i = 0; i < k->connections; i++) close_client(&clients[i]);
    close(epoll);
    stats_sort(us, rounds);
    printf("%-44s %9.3f us     ", k->name, us[0]);
    if (k->goal_us > 0)
        printf("goal <= %-8g %s", k->goal_us, us[0] <= k->goal_us ? "met" : "MISSED");
    else
        printf("no goal");
    printf(" (median %.1f, most %.0f/s, %llu KB resident)\n", us[rounds / 2], best,
           (unsigned long long)resident_kb(t->pid));
    fflush(stdout);
}

/* Twenty look at a host that sends 100 samples a second: how much of a processor all of it takes. */
static void measure_viewers(const struct target *t, unsigned seconds)
{
    enum { VIEWERS = 20 };
    static const struct kind get = {"", "/api/v1/live?host=host0", 1, false, 0, 0, 0},
                             post = {"", "/api/v1/metrics", 1, true, 0, 100, 0};
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)t->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static char request[16384], in[1 << 16];
    int fds[VIEWERS + 1];
    size_t bytes = 0;
    for (int i = 0; i <= VIEWERS; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fds[i], (struct sockaddr *)&at, sizeof at) < 0) die("connect");
        size_t n = make_request(t, i ? &get : &post, request, sizeof request);
        if (send(fds[i], request, n, MSG_NOSIGNAL) != (ssize_t)n) die("send");
        if (recv(fds[i], in, sizeof in, 0) <= 0) die("recv");
    }
    uint64_t cpu = cpu_ns(t->pid), from = clock_raw_ns();
    for (unsigned s = 0; s < seconds; s++) {
        for (unsigned i = 0; i < 64; i++) { /* every 64th is of the host that is looked at */
            size_t n = make_request(t, &post, request, sizeof request);
            if (!strstr(request, "\"host0\"")) continue;
            if (send(fds[0], request, n, MSG_NOSIGNAL) != (ssize_t)n) die("send");
            if (recv(fds[0], in, sizeof in, 0) <= 0) die("recv");
        }
        usleep(1000000);
        for (int i = 1; i <= VIEWERS; i++)
            for (ssize_t n; (n = recv(fds[i], in, sizeof in, MSG_DONTWAIT)) > 0;) bytes += (size_t)n;
    }
    double share = 100 * (double)(cpu_ns(t->pid) - cpu) / (double)(clock_raw_ns() - from);
    printf("%-44s %9.3f %%      goal <= 5        %s (%.1f KB each second and viewer)\n",
           "serve: 20 viewers of 100 series at 1 Hz", share, share <= 5 ? "met" : "MISSED",
           (double)bytes / 1e3 / VIEWERS / seconds);
    for (int i = 0; i <= VIEWERS; i++) close(fds[i]);
}

/* ---- a siege ---- */

enum { DRIPS = 1000, IDLE = 4000, DRIP_MS = 250 };

struct besieged {            /* what the crowd tells at its end */
    uint64_t last_closed_ns; /* from its first byte to its end, of the drip that lasted longest */
    unsigned closed, idle_open;
};

static int dial(const struct target *t)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)t->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0) die("connect");
    return fd;
}

/* Half of them within a head, half within a body. */
static void begin_drip(const struct target *t, int fd, unsigned i)
{
    char text[600];
    int n = snprintf(text, sizeof text,
                     "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                     "Content-Type: application/json\r\nContent-Length: 100000\r\n%s",
                     t->token, i % 2 ? "\r\n" : "X-Long: ");
    if (send(fd, text, (size_t)n, MSG_NOSIGNAL) != n) die("send");
}

/* Closed by the server? What it said before is forgotten. */
static bool has_ended(int fd)
{
    char text[1024];
    ssize_t n;
    do n = recv(fd, text, sizeof text, MSG_DONTWAIT);
    while (n > 0);
    return n == 0 || (errno != EAGAIN && errno != EINTR);
}

/* In a process of its own, so that the client's clock is not kept waiting by it. `ready` is told when all are there. */
static void crowd(const struct target *t, int ready)
{
    static int idle[IDLE], drips[DRIPS];
    static uint64_t began[DRIPS];
    struct besieged out = {0};
    for (unsigned i = 0; i < IDLE; i++) idle[i] = dial(t);
    for (unsigned i = 0; i < DRIPS; i++) {
        drips[i] = dial(t);
        began[i] = clock_raw_ns();
        begin_drip(t, drips[i], i);
    }
    if (write(ready, "", 1) != 1) die("write");
    while (out.closed < DRIPS && clock_raw_ns() - began[DRIPS - 1] < UINT64_C(60000000000)) {
        usleep(DRIP_MS * 1000);
        for (unsigned i = 0; i < DRIPS; i++) {
            if (drips[i] < 0) continue;
            if (!has_ended(drips[i])) {
                send(drips[i], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
                continue;
            }
            uint64_t lasted = clock_raw_ns() - began[i];
            if (lasted > out.last_closed_ns) out.last_closed_ns = lasted;
            out.closed++;
            close(drips[i]);
            drips[i] = -1;
        }
    }
    for (unsigned i = 0; i < IDLE; i++) out.idle_open += !has_ended(idle[i]);
    if (write(ready, &out, sizeof out) != sizeof out) die("write");
    _exit(0);
}

/* Requests of one client, 1 ms apart, until the crowd is through; the number of them. */
static size_t ask_until(const struct target *t, int until, double *ms, size_t most)
{
    static const struct kind self = {"", "/api/v1/self", 1, false, 0, 0, 0};
    struct pollfd p = {.fd = until, .events = POLLIN};
    struct client c = {.fd = dial(t)};
    size_t n = 0;
    while (n < most && poll(&p, 1, 1) == 0) {
        uint64_t from = clock_raw_ns();
        send_one(t, &self, &c);
        while (!take_reply(&c, &self)) continue;
        ms[n++] = (double)(clock_raw_ns() - from) / 1e6;
    }
    close(c.fd);
    return n;
}

static void say_siege(const char *name, double value, const char *unit, double goal)
{
    printf("%-44s %9.3f %-2s     goal <= %-8g %s\n", name, value, unit, goal,
           value <= goal ? "met" : "MISSED");
}

static void measure_siege(const char *tare)
{
    enum { ASKED_MAX = 100000 };
    static double ms[ASKED_MAX];
    struct rlimit files = {DRIPS + IDLE + 200, DRIPS + IDLE + 200}, was;
    struct target t = {0};
    struct besieged out = {0};
    int pipes[2];
    char byte;
    if (getrlimit(RLIMIT_NOFILE, &was) < 0) die("getrlimit");
    if (was.rlim_max > files.rlim_max) files.rlim_max = was.rlim_max;
    if (was.rlim_max < files.rlim_cur && setrlimit(RLIMIT_NOFILE, &files) < 0) {
        printf("serve: no siege: only %llu open files are allowed\n", (unsigned long long)was.rlim_max);
        return;
    }
    setrlimit(RLIMIT_NOFILE, &files);
    start_server(tare, &t, false);
    uint64_t before = resident_kb(t.pid);
    if (pipe(pipes) < 0) die("pipe");
    pid_t child = fork();
    if (child == 0) crowd(&t, pipes[1]);
    close(pipes[1]);
    if (child < 0 || read(pipes[0], &byte, 1) != 1) die("the crowd");
    uint64_t during = resident_kb(t.pid);
    size_t n = ask_until(&t, pipes[0], ms, ASKED_MAX);
    if (resident_kb(t.pid) > during) during = resident_kb(t.pid);
    if (read(pipes[0], &out, sizeof out) != sizeof out) die("the crowd");
    waitpid(child, NULL, 0);
    stats_sort(ms, n);
    printf(
        "siege: %d connections drip, %d do nothing; %u drips were ended, %u idle ones were not; %zu requests\n",
        DRIPS, IDLE, out.closed, out.idle_open, n);
    say_siege("serve: siege: the last drip is ended", (double)out.last_closed_ns / 1e9, "s", 10);
    say_siege("serve: siege: p99 of another client", n ? ms[n - 1 - n / 100] : INFINITY, "ms", 50);
    say_siege("serve: siege: memory, more than before", (double)(during - before) / 1024, "MB", 64);
    kill(t.pid, SIGTERM);
    waitpid(t.pid, NULL, 0);
}

/* The same over TLS 1.3. */
static void measure_https(const char *tare, unsigned rounds)
{
    static const struct kind kinds[] = {
        {"serve: https: GET /healthz, 64 connections", "/healthz", 64, false, 0, 0, 0},
        {"serve: https: GET /api/v1/self, token, 64", "/api/v1/self", 64, false, 0, 0, 0},
        {"serve: https: POST a run, durable, 64", "/api/v1/runs", 64, true, 0, 0, 0},
    };
    struct target t = {0};
    if (!tls_available()) {
        printf("serve: no https: built without libssl\n");
        return;
    }
    start_server(tare, &t, true);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) measure(&t, &kinds[i], rounds);
    measure_handshakes(&t, rounds);
    kill(t.pid, SIGTERM);
    waitpid(t.pid, NULL, 0);
    tls_release(t.trust);
}

int main(int argc, char **argv)
{
    static const struct kind kinds[] = {
        {"serve: GET /healthz, 64 connections", "/healthz", 64, false, 10, 0, 0},
        {"serve: GET /api/v1/self, token, 64", "/api/v1/self", 64, false, 10, 0, 0},
        {"serve: GET /api/v1/runs?limit=1, token, 64", "/api/v1/runs?limit=1", 64, false, 50, 0, 0},
        {"serve: POST a run, durable, 64", "/api/v1/runs", 64, true, 25, 0, 0},
        {"serve: POST a run, durable, 256", "/api/v1/runs", 256, true, 25, 0, 0},
        {"serve: POST a run without blanks, durable, 64", "/api/v1/runs", 64, true, 25, 0, 1},
        {"serve: POST a run without blanks, durable, 256", "/api/v1/runs", 256, true, 25, 0, 1},
        {"serve: POST 100 samples, durable, 64", "/api/v1/metrics", 64, true, 667, 100, 0},
    };
    struct target t = {0};
    unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 13;
    if (argc < 2 || !rounds || rounds > ROUNDS_MAX) return 2;
    make_document();
    start_server(argv[1], &t, false);
    printf("the run that is posted: %zu bytes, without blanks %zu\n", document_size[0], document_size[1]);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (argc < 4 || strstr(kinds[i].name, argv[3])) measure(&t, &kinds[i], rounds);
    if (argc < 4) measure_viewers(&t, rounds);
    kill(t.pid, SIGTERM);
    waitpid(t.pid, NULL, 0);
    if (argc > 3) return 0;
    measure_https(argv[1], rounds);
    measure_siege(argv[1]);
    return 0;
}

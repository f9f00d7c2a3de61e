/* SPDX-License-Identifier: MIT
 * cmd_serve.c - `tare serve`: options, the address, signals. The server itself is src/server. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "core/mem.h"
#include "server/server.h"

struct serve_command {
    const char *data, *db, *bind, *operations;
    uint64_t port, threads, connections, per_address;
    double rate;
    struct duration idle, longest; /* of sessions */
    bool behind_proxy;
    struct opt_list hosts;
};

static bool read_address(const char *text, uint16_t port, struct sockaddr_storage *out)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        return true;
    }
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1) return false;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    return true;
}

/* Tokens travel in the clear: over a network only behind something that encrypts. */
static int check_address(struct cli *cli, const struct serve_command *a, struct sockaddr_storage *at)
{
    if (!read_address(a->bind, (uint16_t)a->port, at))
        return cli_usage_error(cli, "--bind %s: is no address of IPv4 or IPv6", a->bind);
    struct address where = address_of(at);
    if (!address_is_loopback(&where) && !a->behind_proxy)
        return cli_usage_error(
            cli,
            "--bind %s: others could read tokens on their way: this tare has no TLS yet; put a proxy "
            "that has in front of it, and say --behind-proxy",
            a->bind);
    return 0;
}

static void say_to_operator(void *ctx, const char *text)
{
    cli_warn(ctx, "%s", text);
}

/* Room for the connections, and no core file that could hold tokens. */
static void set_limits(struct cli *cli, uint64_t connections)
{
    struct rlimit files, none = {0, 0};
    enum { OTHERS = 64 };
    setrlimit(RLIMIT_CORE, &none);
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= connections + OTHERS) return;
    files.rlim_cur = connections + OTHERS < files.rlim_max ? connections + OTHERS : files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < connections + OTHERS)
        cli_warn(cli, "this process may have %llu open files: fewer than %llu connections will fit",
                 (unsigned long long)files.rlim_cur, (unsigned long long)connections);
}

static void announce(struct cli *cli, struct server *s, const struct serve_command *a)
{
    struct buf text = BUF_INIT;
    tare_error none = TARE_ERROR_INIT;
    buf_printf(&text, "http://%s:%u\n", s->at_text, loop_port(s->loop));
    bool pages = server_login_link(s, &text, &none) == TARE_OK;
    cli_put(cli, &text);
    fflush(cli->out);
    if (pages) cli_note(cli, "the second line logs a browser in: once, within 10 minutes");
    if (!pages) cli_note(cli, "without pages: %s", none.text);
    if (a->db)
        cli_note(cli,
                 "data in PostgreSQL; tare token new --scope read,ingest with the same --db makes a token");
    else
        cli_note(cli, "data in %s; tare token new --data %s --scope read,ingest makes a token", a->data,
                 a->data);
    buf_release(&text);
}

/* The first signal asks for an orderly end, the second one ends at once. */
static void wait_for_signal(const sigset_t *signals)
{
    int got;
    while (sigwait(signals, &got) != 0) continue;
    pthread_sigmask(SIG_UNBLOCK, signals, NULL);
}

/* What may be run, and the processes that run it: before anything else is open, and before there are threads. */
static struct operations operations = OPERATIONS_INIT;
static struct runner runners[RUNS_AT_ONCE_MAX];

static tare_status start_runners(const char *file, struct server_options *o, tare_error *err)
{
    struct buf store = BUF_INIT;
    char *real = NULL;
    tare_status s = operations_open(&operations, file, err);
    if (s == TARE_OK) s = server_store(o, true, &store, err);
    if (s == TARE_OK && !o->db && !(real = realpath(o->data, NULL))) s = error_errno(err, "%s", o->data);
    for (uint64_t i = 0; s == TARE_OK && i < operations.at_once; i++)
        s = runner_start(&runners[i], &operations, real, err);
    mem_free_libc(real);
    buf_release(&store);
    o->operations = &operations;
    o->runners = runners;
    return s;
}

static void stop_runners(const struct server_options *o)
{
    for (uint64_t i = 0; o->operations && i < o->operations->at_once; i++) runner_stop(&o->runners[i]);
    operations_release(&operations);
}

static int serve(struct cli *cli, const struct serve_command *a, struct server_options *o)
{
    struct server *s = NULL;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    umask(077);
    set_limits(cli, a->connections);
    if (a->operations && start_runners(a->operations, o, &cli->error) < 0) return cli_fail(cli);
    if (server_open(&s, o, &cli->error) < 0) return cli_fail(cli);
    announce(cli, s, a);
    wait_for_signal(&signals);
    server_stop(s);
    server_close(s);
    stop_runners(o);
    return CLI_GOOD;
}

int cmd_serve(struct cli *cli, int argc, char **argv)
{
    static const struct opt_usage usage = {
        .synopsis = "tare serve [options]",
        .about = "Keep runs of many machines and answer questions about them by HTTP, until a signal ends it. Every "
                 "request but /healthz needs a token (tare token new). Without options it listens on 127.0.0.1 only. "
                 "The address goes to stdout.",
        .tail = "tare serve                                   on http://127.0.0.1:8321, data in tare-server/\n"
                "tare token new --scope read,ingest           a token for it\n"
                "curl -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:8321/api/v1/runs",
    };
    struct serve_command a = {.data = "tare-server",
                              .bind = "127.0.0.1",
                              .port = SERVER_PORT,
                              .threads = 2,
                              .connections = 4096,
                              .per_address = 64,
                              .rate = 1000,
                              .idle = {INT64_C(1800000000000)},
                              .longest = {INT64_C(43200000000000)},
                              .hosts = OPT_LIST_INIT};
    const struct opt rows[] = {
        OPT_UINT_IN('p', "port", &a.port, 0, 65535, "listen on this port; 0: any that is free"),
        OPT_STRING(0, "bind", &a.bind, "<address>", "listen on this address of the machine"),
        OPT_STRING(0, "data", &a.data, "<dir>", "where everything is kept; its owner's alone", .flags = OPT_DIR),
        OPT_STRING(0, "db", &a.db, "<url>",
                   "keep everything in this PostgreSQL database instead, which several servers may share: "
                   "postgresql://user@host/name"),
        OPT_FLAG(0, "behind-proxy", &a.behind_proxy,
                 "a proxy with TLS stands in front: other addresses than loopback are fine, "
                 "and all clients have its address"),
        OPT_LIST(0, "allow-host", &a.hosts, "<name>",
                 "a name by which clients call this server, beside its address and localhost"),
        OPT_TIME_IN(0, "session-idle", &a.idle, 1000000, INT64_C(86400000000000),
                    "a browser that asks for nothing so long is logged out"),
        OPT_TIME_IN(0, "session-max", &a.longest, 1000000, INT64_C(604800000000000),
                    "a browser is logged out after this long in any case"),
        OPT_STRING(0, "operations", &a.operations, "<file>",
                   "what may be run for clients: names, programs, parameters, limits; without it nothing is",
                   .flags = OPT_FILE),
        OPT_GROUP("limits"),
        OPT_UINT_IN(0, "threads", &a.threads, 1, 64, "threads that answer"),
        OPT_UINT_IN(0, "connections", &a.connections, 1, 65536, "connections at a time"),
        OPT_UINT_IN(0, "per-address", &a.per_address, 0, 65536,
                    "connections of one address at a time; 0: no such limit"),
        OPT_DOUBLE(0, "rate", &a.rate, 0, 1e9, "requests a second of each token and of each address; 0: no limit"),
        OPT_END,
    };
    struct server_options o = {.login = LOGIN_TIMES, .say = say_to_operator, .say_ctx = cli};
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc == 0) rc = check_address(cli, &a, &o.at);
    if (rc == 0) {
        o.data = a.data;
        o.db = a.db;
        o.threads = (unsigned)a.threads;
        o.connections_max = (unsigned)a.connections;
        o.per_address_max = a.behind_proxy ? 0 : (unsigned)a.per_address;
        o.rate_per_s = a.rate;
        o.encrypted = a.behind_proxy;
        o.login.idle_ns = (uint64_t)a.idle.ns;
        o.login.longest_ns = (uint64_t)a.longest.ns;
        o.hosts = (const char *const *)a.hosts.items;
        o.n_hosts = a.hosts.n;
        rc = serve(cli, &a, &o);
    }
    opt_list_release(&a.hosts);
    return rc;
}

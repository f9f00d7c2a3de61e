/* SPDX-License-Identifier: MIT
 * cmd_serve.c - `tare serve`: options, the address, signals. The server itself is src/server. */
#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/service.h"
#include "core/fmt.h"
#include "core/mem.h"
#include "core/unit.h"
#include "server/server.h"
#include "store/care.h"
#include "tls/tls.h"

struct serve_command {
    const char *data, *db, *bind, *operations;
    uint64_t port, threads, connections, per_address, uploads;
    double rate;
    struct duration idle, longest; /* of sessions */
    bool behind_proxy, check, json;
    const char *backup;
    const char *tls_cert, *tls_key;
    struct duration keep;
    const char *keep_samples;
    struct opt_list hosts, badges;
    struct service manager;
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
    if (a->manager.listener)
        *at = a->manager.at;
    else if (!read_address(a->bind, (uint16_t)a->port, at))
        return cli_usage_error(cli, "--bind %s: is no address of IPv4 or IPv6", a->bind);
    struct address where = address_of(at);
    char text[INET6_ADDRSTRLEN];
    address_text(&where, text);
    if (!a->tls_cert != !a->tls_key) return cli_usage_error(cli, "--tls-cert and --tls-key belong together");
    if (!address_is_loopback(&where) && !a->behind_proxy && !a->tls_cert)
        return cli_usage_error(
            cli,
            "%s %s: others could read tokens on their way: give --tls-cert and --tls-key, or put a proxy "
            "with TLS in front of it and say --behind-proxy",
            a->manager.listener ? "a socket on" : "--bind", text);
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
    server_address(s, &text);
    buf_add_str(&text, "\n");
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

/* After the processes that run operations were forked: they get no key. */
static tare_status open_tls(struct cli *cli, const struct serve_command *a, struct server_options *o)
{
    tare_status s = tls_serve(&o->tls, a->tls_cert, a->tls_key, &cli->error);
    const char *complaint = s == TARE_OK ? tls_complaint(o->tls) : NULL;
    if (complaint) cli_warn(cli, "%s: the certificate %s: clients will refuse it", a->tls_cert, complaint);
    return s;
}

static void renew_tls(struct cli *cli, const struct serve_command *a, struct tls_context *tls)
{
    tare_error err = TARE_ERROR_INIT;
    if (tls_renew(tls, a->tls_cert, a->tls_key, &err) != TARE_OK) {
        cli_warn(cli, "the certificate stays as it was: %s", err.text);
        return;
    }
    const char *complaint = tls_complaint(tls);
    cli_note(cli, "%s: read again%s%s", a->tls_cert, complaint ? ": the certificate " : "",
             complaint ? complaint : "");
}

/* The first signal asks for an orderly end, the second one ends at once. With TLS, SIGHUP reads the files anew. */
static void wait_for_signal(struct cli *cli, const struct serve_command *a, struct tls_context *tls,
                            const sigset_t *signals)
{
    int got = 0;
    for (;;) {
        if (sigwait(signals, &got) != 0) continue;
        if (got != SIGHUP || !tls) break;
        renew_tls(cli, a, tls);
    }
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

/* ---- --check, --backup: nothing is served ---- */

static struct store *open_data(struct cli *cli, const struct server_options *o)
{
    struct buf where = BUF_INIT;
    struct store *store = NULL;
    tare_status s = server_store(o, false, &where, &cli->error);
    if (s == TARE_OK)
        s = store_open(&store, where.data, &(struct store_options){.create = false}, &cli->error);
    buf_release(&where);
    return s == TARE_OK ? store : NULL;
}

static void say_bytes(struct answer *out, const char *key, struct known_u64 bytes)
{
    struct buf text = BUF_INIT;
    fmt_bytes(&text, (double)bytes.v);
    if (bytes.known)
        answer_uint(out, key, bytes.v, "%-12s %s\n", key, text.failed ? "?" : text.data);
    else
        answer_null(out, key, "%-12s unknown: it is on the database's machine\n", key);
    buf_release(&text);
}

static int check_data(struct cli *cli, const struct serve_command *a, const struct server_options *o)
{
    struct store_health h;
    struct answer out;
    struct store *store = open_data(cli, o);
    if (!store) return cli_fail(cli);
    tare_status s = store_check(store, &h, &cli->error);
    if (s == TARE_OK) {
        cli_answer_begin(cli, &out, a->json);
        answer_str(&out, "store", store->where, "%-12s %s\n", "store", store->where);
        answer_uint(&out, "schema", h.schema, "%-12s %llu\n", "schema", (unsigned long long)h.schema);
        answer_uint(&out, "runs", h.runs, "%-12s %llu\n", "runs", (unsigned long long)h.runs);
        say_bytes(&out, "size", (struct known_u64){true, h.bytes});
        say_bytes(&out, "free", h.free_bytes);
        answer_str(&out, "trouble", h.trouble[0] ? h.trouble : NULL, "%-12s %s\n", "state",
                   h.trouble[0] ? h.trouble : "whole: every document unpacks to what was kept");
    }
    store_close(store);
    if (s != TARE_OK) return cli_fail(cli);
    int rc = cli_answer_end(cli, &out);
    return rc == CLI_GOOD && h.trouble[0] ? CLI_USAGE : rc;
}

static int back_up(struct cli *cli, const struct serve_command *a, const struct server_options *o)
{
    struct store *store = open_data(cli, o);
    if (!store) return cli_fail(cli);
    tare_status s = store->ops->backup(store, a->backup, &cli->error);
    store_close(store);
    if (s != TARE_OK) return cli_fail(cli);
    cli_note(cli, "%s: a whole copy; put it in place of %s to use it", a->backup, SERVER_STORE);
    return CLI_GOOD;
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
    mallopt(M_TRIM_THRESHOLD,
            16 << 20); /* what each group of runs needs is not given back to be asked for again */
    set_limits(cli, a->connections);
    if (a->operations && start_runners(a->operations, o, &cli->error) < 0) return cli_fail(cli);
    if (a->tls_cert && open_tls(cli, a, o) < 0) return cli_fail(cli);
    if (server_open(&s, o, &cli->error) < 0) return cli_fail(cli);
    announce(cli, s, a);
    service_tell(&a->manager, "READY=1");
    wait_for_signal(cli, a, o->tls, &signals);
    service_tell(&a->manager, "STOPPING=1");
    server_stop(s);
    server_close(s);
    stop_runners(o);
    return CLI_GOOD;
}

/* "30d,365d,1825d": each no shorter than the one before, because sums outlive what they are made of. */
static int read_keep_samples(struct cli *cli, const char *text, struct keep_samples *out)
{
    int64_t *const to[] = {&out->readings_ms, &out->minutes_ms, &out->hours_ms};
    int64_t before = 2 * INT64_C(3600000);
    for (size_t i = 0; text; i++) {
        char one[64];
        size_t n = strcspn(text, ",");
        struct duration d = {0};
        snprintf(one, sizeof one, "%.*s", (int)n, text);
        if (i == 3 || n >= sizeof one || unit_parse_duration(one, &d, &cli->error) != TARE_OK)
            return cli_usage_error(
                cli, "--keep-samples %s: one to three times are wanted, as in 30d,365d,1825d", text);
        if (d.ns / 1000000 < before)
            return cli_usage_error(cli, "--keep-samples: %s is shorter than %s", one,
                                   i ? "the one before" : "2h, the least");
        *to[i] = before = d.ns / 1000000;
        text = text[n] ? text + n + 1 : NULL;
    }
    return 0;
}

static int set_options(struct cli *cli, const struct serve_command *a, struct server_options *o)
{
    o->listener = a->manager.listener;
    o->data = a->data;
    o->db = a->db;
    o->threads = (unsigned)a->threads;
    o->connections_max = (unsigned)a->connections;
    o->per_address_max = a->behind_proxy ? 0 : (unsigned)a->per_address;
    o->rate_per_s = a->rate;
    o->uploads_max = a->uploads << 20;
    o->encrypted = a->behind_proxy || a->tls_cert;
    o->login.idle_ns = (uint64_t)a->idle.ns;
    o->login.longest_ns = (uint64_t)a->longest.ns;
    o->hosts = (const char *const *)a->hosts.items;
    o->n_hosts = a->hosts.n;
    o->public_badges = (const char *const *)a->badges.items;
    o->n_public_badges = a->badges.n;
    o->keep_ms = a->keep.ns / 1000000;
    return read_keep_samples(cli, a->keep_samples, &o->keep_samples);
}

static const struct opt_usage usage = {
    .synopsis = "tare serve [options]",
    .about = "Keep runs of many machines and answer questions about them by HTTP, until a signal ends it. Every "
             "request but /healthz needs a token (tare token new). Without options it listens on 127.0.0.1 only. "
             "The address goes to stdout.",
    .tail = "tare serve                                   on http://127.0.0.1:8321, data in tare-server/\n"
            "tare token new --scope read,ingest           a token for it\n"
            "curl -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:8321/api/v1/runs",
};

int cmd_serve(struct cli *cli, int argc, char **argv)
{
    struct serve_command a = {.data = "tare-server",
                              .bind = "127.0.0.1",
                              .port = SERVER_PORT,
                              .threads = 2,
                              .connections = 4096,
                              .per_address = 64,
                              .rate = 1000,
                              .uploads = 16384,
                              .idle = {INT64_C(1800000000000)},
                              .longest = {INT64_C(43200000000000)},
                              .hosts = OPT_LIST_INIT,
                              .badges = OPT_LIST_INIT};
    const struct opt rows[] = {
        OPT_UINT_IN('p', "port", &a.port, 0, 65535, "listen on this port; 0: any that is free"),
        OPT_STRING(0, "bind", &a.bind, "<address>", "listen on this address of the machine"),
        OPT_STRING(0, "data", &a.data, "<dir>", "where everything is kept; its owner's alone", .flags = OPT_DIR),
        OPT_STRING(0, "db", &a.db, "<url>",
                   "keep everything in this PostgreSQL database instead, which several servers may share: "
                   "postgresql://user@host/name"),
        OPT_TIME_IN(0, "keep", &a.keep, INT64_C(3600000000000), INT64_C(3153600000000000000),
                    "remove runs that were made longer ago, but none with a tag or a baseline's name (default: all "
                    "stay)", .flags = OPT_NO_DEFAULT, .arg = "<time>"),
        OPT_STRING(0, "keep-samples", &a.keep_samples, "<times>",
                   "remove samples of hosts that are older; a second and a third time: their minutes, and their hours "
                   "(30d,365d,1825d; default: all stay)"),
        OPT_FLAG(0, "check", &a.check,
                 "do not serve: look whether the data is whole, and say how large it is; exit code 2 when it is not"),
        OPT_PATH(0, "backup", &a.backup, "<file>",
                 "do not serve: copy the data as of this moment into a new file, also while a server runs"),
        OPT_JSON(&a.json),
        OPT_FLAG(0, "behind-proxy", &a.behind_proxy,
                 "a proxy with TLS stands in front: other addresses than loopback are fine, "
                 "and all clients have its address"),
        OPT_STRING(0, "tls-cert", &a.tls_cert, "<file>",
                   "serve https with this certificate and those that link it to its issuer (PEM); other addresses than "
                   "loopback are fine then", .flags = OPT_FILE),
        OPT_STRING(0, "tls-key", &a.tls_key, "<file>", "the certificate's key (PEM); its owner's alone",
                   .flags = OPT_FILE),
        OPT_LIST(0, "allow-host", &a.hosts, "<name>",
                 "a name by which clients call this server, beside its address and localhost"),
        OPT_LIST(0, "public-badge", &a.badges, "<project>",
                 "badges of this project need no token: how its subjects stand is for everybody"),
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
        OPT_UINT_IN(0, "uploads", &a.uploads, 0, UINT32_MAX, "MiB of files (traces) of each project; 0: no such limit"),
        OPT_DOUBLE(0, "rate", &a.rate, 0, 1e9, "requests a second of each token and of each address; 0: no limit"),
        OPT_END,
    };
    struct server_options o = {.login = LOGIN_TIMES, .say = say_to_operator, .say_ctx = cli};
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc == 0 && service_begin(&a.manager, &cli->error) < 0) rc = cli_fail_input(cli);
    if (rc == 0) rc = check_address(cli, &a, &o.at);
    if (rc == 0) rc = set_options(cli, &a, &o);
    if (rc == 0) {
        if (a.check)
            rc = check_data(cli, &a, &o);
        else
            rc = a.backup ? back_up(cli, &a, &o) : serve(cli, &a, &o);
    }
    tls_release(o.tls);
    opt_list_release(&a.hosts);
    opt_list_release(&a.badges);
    return rc;
}

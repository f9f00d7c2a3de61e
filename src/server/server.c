/* SPDX-License-Identifier: MIT
 * server.c - who may come in, and the parts put together. Refusals are in order of cost, and say no more than they
 * must. */
#include "server/server.h"
#include "server/live/roller.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/file.h"
#include "core/mem.h"
#include "report/html.h"
#include "server/app.h"
#include "server/route.h"

enum { READERS = 2, WAITING_MAX = 4096 };

/* ---- admission ---- */

static bool host_is(const char *host, const char *name)
{
    size_t n = strlen(name);
    return strncasecmp(host, name, n) == 0 && (!host[n] || host[n] == ':');
}

/* A page of another site whose name was made to point here has that name in Host: DNS rebinding ends here. */
static bool host_is_ours(const struct server *s, const char *host)
{
    static const char *const always[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (host_is(host, always[i])) return true;
    for (size_t i = 0; i < s->options.n_hosts; i++)
        if (host_is(host, s->options.hosts[i])) return true;
    return host_is(host, s->at_text);
}

/* What changes something must not come from a page of another origin. Programs send neither header. Where browsers
 * reach the server by https only, a page of http under the same name may be anybody's on the way. */
static bool origin_is_ours(const struct server *s, const struct exchange *x)
{
    const char *site = http_header(&x->head, "sec-fetch-site"), *origin = http_header(&x->head, "origin");
    if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0) return false;
    if (!origin) return true;
    const char *host = strstr(origin, "://");
    if (!host || (s->options.encrypted && strncasecmp(origin, "https:", 6) != 0)) return false;
    return strcasecmp(host + 3, x->head.host) == 0;
}

static bool is_safe(enum http_method m)
{
    return m == METHOD_GET || m == METHOD_HEAD;
}

/* Whose requests are counted, and as what. */
struct rate_key {
    char kind; /* address, wrong token, read, write */
    char who[ADDRESS_SIZE];
};

/* False: answered with 429. */
static bool may_take(struct server *s, struct exchange *x, const struct rate_limit *limit,
                     const struct rate_key *key)
{
    uint64_t wait = rate_take(s->rate, limit, key, sizeof *key, clock_raw_ns());
    if (!wait) return true;
    reply_problem(x, 429, "too many requests");
    x->reply.extra =
        arena_printf(&x->arena, "Retry-After: %llu\r\n", (unsigned long long)(wait / 1000000000 + 1));
    return false;
}

static bool address_may(struct server *s, struct exchange *x, const struct rate_limit *limit, char kind)
{
    struct address group = address_group(&x->peer);
    struct rate_key key = {.kind = kind};
    memcpy(key.who, group.bytes, sizeof key.who);
    return may_take(s, x, limit, &key);
}

static void refuse_method(struct exchange *x, unsigned allowed)
{
    char names[80] = "";
    size_t used = 0;
    for (unsigned m = 1; m < METHODS; m++)
        if (allowed >> m & 1)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     http_method_name((enum http_method)m));
    reply_problem(x, 405, "this path has only: %s", names);
    x->reply.extra = arena_printf(&x->arena, "Allow: %s\r\n", names);
}

/* A flood of them must not fill the disk: what is beyond the limit is counted. */
void server_note(struct server *s, const struct exchange *x)
{
    struct rate_key key = {.kind = 'n'};
    if (rate_take(s->rate, &s->listed, &key, sizeof key, clock_raw_ns()) == 0)
        notes_refused(s->notes, x);
    else
        notes_unlisted(s->notes);
    desk_nudge(s->writer);
}

void server_refuse_stranger(struct server *s, struct exchange *x, const char *why)
{
    if (!address_may(s, x, &s->failed_auth, 'f')) return;
    reply_problem(x, 401, "%s", why);
    x->reply.extra = "WWW-Authenticate: Bearer realm=\"tare\"\r\n";
    server_note(s, x);
}

/* Cookies know no ports: two servers of one machine would take each other's, but for the port in the name. */
void server_cookie_name(const struct server *s, char out[32])
{
    if (s->options.encrypted)
        snprintf(out, 32, "__Host-tare_session");
    else
        snprintf(out, 32, "tare_session_%u", loop_port(s->loop));
}

bool server_cookie(const struct server *s, const struct exchange *x, char out[LOGIN_TEXT_SIZE])
{
    char name[32];
    const char *header = http_header(&x->head, "cookie");
    server_cookie_name(s, name);
    return header && login_cookie(header, name, out);
}

/* A session that came of a token ends with it. */
bool server_login(struct server *s, const struct exchange *x, struct login *out)
{
    char text[LOGIN_TEXT_SIZE];
    if (!server_cookie(s, x, text) || !logins_check(s->logins, text, login_clock(), out)) return false;
    if (!out->by_token || tokens_stands(s->tokens, out->grant.id)) return true;
    logins_end(s->logins, text);
    return false;
}

/* Browsers send cookies with requests that other sites' pages make. What changes something must say Origin, which was
 * compared already, and carry a header that no form can send and no other origin may. */
static bool is_own_page(const struct exchange *x)
{
    return is_safe(x->head.method) || (http_header(&x->head, "origin") && http_header(&x->head, "x-tare"));
}

static bool refuse_page(struct exchange *x)
{
    reply_problem(x, 403, "with a session, what changes something needs the headers Origin and X-Tare");
    return false;
}

/* By its token, or by its session. False: answered. */
static bool find_grant(struct server *s, struct exchange *x, struct grant *out)
{
    const char *auth = http_header(&x->head, "authorization");
    struct login session;
    if (auth && strncasecmp(auth, "Bearer ", 7) == 0 && tokens_check(s->tokens, auth + 7, out)) return true;
    if (auth || !server_login(s, x, &session)) {
        server_refuse_stranger(s, x, "a token is needed: Authorization: Bearer ...");
        return false;
    }
    if (!is_own_page(x)) return refuse_page(x);
    *out = session.grant;
    return true;
}

/* False: answered. */
static bool is_authorized(struct server *s, struct exchange *x)
{
    struct grant grant;
    if (x->route->scope == SCOPE_OPEN)
        return is_own_page(x) || !http_header(&x->head, "cookie") || refuse_page(x);
    if (!find_grant(s, x, &grant)) return false;
    x->scopes = grant.scopes;
    memcpy(x->project, grant.project, sizeof x->project);
    static_assert(sizeof grant.id <= sizeof x->who, "an id fits");
    memcpy(x->who, grant.id, sizeof grant.id);
    if (grant.use_is_news) {
        notes_used(s->notes, grant.id, (int64_t)(clock_unix_ns() / 1000000));
        desk_nudge(s->writer);
    }
    if (!(grant.scopes & x->route->scope)) {
        reply_problem(x, 403, "this token has not the scope that is needed");
        server_note(s, x);
        return false;
    }
    struct rate_key key = {.kind = x->route->rate == RATE_WRITE ? 'w' : 'r'};
    static_assert(sizeof grant.id <= sizeof key.who, "an id fits");
    memcpy(key.who, grant.id, sizeof grant.id);
    return may_take(s, x, &s->limit, &key);
}

static bool has_wanted_type(const struct exchange *x)
{
    const char *other = x->route->steps->takes;
    bool json = !x->route->steps->bytes && exchange_has_type(x, "application/json");
    return json || (other && exchange_has_type(x, other));
}

/* Bodies are taken as they are, but for routes that unpack gzip themselves, within their limit. False: answered. */
static bool is_plain(struct exchange *x)
{
    const char *coding = http_header(&x->head, "content-encoding"), *other = x->route->steps->takes;
    bool known = coding && x->route->steps->gzip && strcasecmp(coding, "gzip") == 0;
    if (coding && !known && strcasecmp(coding, "identity") != 0)
        reply_problem(x, 415, "a body with a Content-Encoding is not taken");
    else if (x->route->steps->bytes && !has_wanted_type(x))
        reply_problem(x, 415, "Content-Type: %s is needed", other);
    else if (x->route->body_max && !has_wanted_type(x))
        reply_problem(x, 415, "Content-Type: application/json%s%s is needed", other ? " or " : "",
                      other ? other : "");
    return !x->reply.status;
}

static void admit(void *ctx, struct exchange *x)
{
    struct server *s = ctx;
    unsigned allowed;
    if (!host_is_ours(s, x->head.host)) {
        reply_problem(x, 421, "this server is not called so (--allow-host)");
        return;
    }
    if (!address_may(s, x, &s->limit, 'a')) return;
    x->route = route_find(x->head.method, x->head.path, x->param, &allowed);
    if (!x->route) {
        if (allowed)
            refuse_method(x, allowed);
        else
            reply_problem(x, 404, "there is nothing here");
        return;
    }
    if (!is_safe(x->head.method) && !origin_is_ours(s, x)) {
        reply_problem(x, 403, "requests of other sites are refused");
        return;
    }
    if (!is_authorized(s, x) || !is_plain(x)) return;
    x->body_max = x->route->body_max;
}

static void handle(void *ctx, struct exchange *x)
{
    steps_begin(ctx, x);
}

/* ---- data ---- */

/* Refused where others may look into it. `make`: made, 0700, where it is missing. */
static tare_status data_dir(const char *path, bool make, tare_error *err)
{
    struct stat st;
    if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_errno(err, "%s: cannot make the folder of the data", path);
    if (stat(path, &st) < 0 && errno == ENOENT)
        return error_set(err, TARE_INVALID, "%s: there is no data of a server here; --data names its folder",
                         path);
    if (stat(path, &st) < 0) return error_errno(err, "%s: cannot be used as the folder of the data", path);
    if (!S_ISDIR(st.st_mode)) return error_set(err, TARE_INVALID, "%s: is no folder", path);
    if (st.st_mode & 077)
        return error_set(err, TARE_INVALID, "%s: others may look into it (mode %03o): chmod 700 it first",
                         path, (unsigned)st.st_mode & 0777);
    return TARE_OK;
}

tare_status server_store(const struct server_options *o, bool make, struct buf *out, tare_error *err)
{
    tare_status status = TARE_OK;
    if (o->db && !store_is_url(o->db))
        return error_set(err, TARE_INVALID,
                         "--db takes the address of a PostgreSQL database: postgresql://user@host/name");
    if (o->db) {
        buf_add_str(out, o->db);
    } else {
        status = data_dir(o->data, make, err);
        buf_printf(out, "%s/%s", o->data, SERVER_STORE);
    }
    return status == TARE_OK ? buf_status(out, err) : status;
}

/* ---- opening ---- */

static tare_status open_parts(struct server *s, const char *store, tare_error *err)
{
    const struct server_options *o = &s->options;
    struct desk_options readers = {
        .store = store, .threads = READERS, .waiting_max = WAITING_MAX, .work = steps_read, .ctx = s};
    struct desk_options viewers = readers;
    viewers.threads = 1;
    struct desk_options writer = {.store = store,
                                  .threads = 1,
                                  .waiting_max = WAITING_MAX,
                                  .together = true,
                                  .work = steps_write,
                                  .between = retention_slice,
                                  .ctx = s};
    struct desk_options roller = {.store = store, .threads = 1, .between = roller_slice, .ctx = s};
    struct loop_options loop = {.at = o->at,
                                .listener = o->listener,
                                .threads = o->threads,
                                .connections_max = o->connections_max,
                                .per_address_max = o->per_address_max,
                                .times = LOOP_TIMES,
                                .app = {s, admit, handle},
                                .tls = o->tls};
    tare_status status = tokens_open(&s->tokens, store, err);
    if (status == TARE_OK) status = logins_open(&s->logins, &o->login, err);
    if (status == TARE_OK) status = rate_open(&s->rate, err);
    if (status == TARE_OK) status = notes_open(&s->notes, err);
    if (status == TARE_OK) status = desk_open(&s->readers, &readers, err);
    if (status == TARE_OK) status = desk_open(&s->viewers, &viewers, err);
    if (status == TARE_OK) status = desk_open(&s->writer, &writer, err);
    if (status == TARE_OK) status = desk_open(&s->roller, &roller, err);
    struct jobs_options jobs = {o->operations, o->runners, store, o->say, o->say_ctx};
    if (status == TARE_OK && o->operations) status = jobs_open(&s->jobs, &jobs, err);
    if (status == TARE_OK) status = streams_open(&s->streams, s, store, err);
    struct alarms_options alarms = {o->operations, store, o->say, o->say_ctx};
    if (status == TARE_OK && o->operations && o->operations->alert_rules.n)
        status = alarms_open(&s->alarms, &alarms, err);
    struct exports_options exports = {o->operations, store, o->say, o->say_ctx};
    if (status == TARE_OK && o->operations && o->operations->n_exports)
        status = exports_open(&s->exports, &exports, err);
    if (status == TARE_OK) status = loop_open(&s->loop, &loop, err);
    return status;
}

static void name_address(struct server *s)
{
    struct address a = address_of(&s->options.at);
    char text[INET6_ADDRSTRLEN];
    address_text(&a, text);
    snprintf(s->at_text, sizeof s->at_text, strchr(text, ':') ? "[%s]" : "%s", text);
}

tare_status server_open(struct server **out, const struct server_options *o, tare_error *err)
{
    struct buf store = BUF_INIT;
    tare_status status = server_store(o, true, &store, err);
    if (status == TARE_OK && !http_library())
        status = error_set(err, TARE_UNSUPPORTED,
                           "this tare was built without llhttp: no server (`make deps`, then `make`)");
    struct server *s = status == TARE_OK ? mem_new(1, sizeof *s) : NULL;
    if (status == TARE_OK && !s) status = error_nomem(err, "the server");
    if (status == TARE_OK) {
        s->options = *o;
        s->limit = (struct rate_limit){o->rate_per_s, o->rate_per_s * 2};
        s->failed_auth = (struct rate_limit){32.0 / 60, 32};
        s->listed = (struct rate_limit){1, 128};
        s->began = instant_now();
        s->began_unix_ms = (int64_t)(clock_unix_ns() / 1000000);
        s->began_boot_ns = login_clock();
        name_address(s);
        status = open_parts(s, store.data, err);
    }
    buf_release(&store);
    if (status != TARE_OK) {
        server_close(s);
        return status;
    }
    *out = s;
    return TARE_OK;
}

void server_address(const struct server *s, struct buf *out)
{
    buf_printf(out, "%s://%s:%u", s->options.tls ? "https" : "http", s->at_text, loop_port(s->loop));
}

/* Behind the #: browsers send it nowhere, so it is in no log and in no Referer. */
tare_status server_login_link(struct server *s, struct buf *out, tare_error *err)
{
    char once[LOGIN_TEXT_SIZE];
    if (!app_is_built()) return error_set(err, TARE_UNSUPPORTED, "%s", HTML_MISSING);
    tare_status status = logins_link(s->logins, login_clock(), once, err);
    if (status == TARE_OK) {
        server_address(s, out);
        buf_printf(out, "/login#once=%s\n", once);
    }
    return status == TARE_OK ? buf_status(out, err) : status;
}

void server_stop(struct server *s)
{
    jobs_stop(s->jobs); /* who waits for a job is answered */
    streams_stop(s->streams);
    loop_stop(s->loop);
}

/* The loop first: it waits for what the desks hold. */
void server_close(struct server *s)
{
    if (!s) return;
    if (s->streams) streams_stop(s->streams);
    loop_close(s->loop);
    jobs_stop(s->jobs);
    streams_close(s->streams);
    desk_close(s->readers);
    desk_close(s->viewers);
    desk_close(s->writer);
    desk_close(s->roller);
    jobs_close(s->jobs);
    notes_close(s->notes);
    alarms_close(s->alarms);
    exports_close(s->exports);
    rate_close(s->rate);
    tokens_close(s->tokens);
    logins_close(s->logins);
    mem_free(s);
}

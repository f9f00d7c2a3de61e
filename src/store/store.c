/* SPDX-License-Identifier: MIT
 * store.c - what all backends share: from a run document to rows, compression, names, pruning. No SQL. */
#include "store/care.h"
#include "store/store.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include "analyze/judge/judge.h"
#include "client/client.h"
#include "core/map.h"
#include "core/mem.h"

bool store_is_url(const char *where)
{
    return strncmp(where, "postgresql://", 13) == 0 || strncmp(where, "postgres://", 11) == 0;
}

tare_status store_open(struct store **out, const char *where, const struct store_options *o, tare_error *err)
{
    if (client_is_url(where)) return store_remote.open(out, where, o, err);
    return (store_is_url(where) ? &store_postgres : &store_sqlite)->open(out, where, o, err);
}

void store_close(struct store *s)
{
    if (!s) return;
    ZSTD_freeCCtx(s->packer);
    s->ops->close(s);
}

bool store_name_ok(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && !strchr("._-/", c)) return false;
    }
    return n > 0 && n <= STORE_NAME_MAX;
}

/* ---- lists ---- */

void store_run_json(struct json *j, const struct store_run *r)
{
    json_object_begin(j);
    json_kv_string(j, "id", r->id);
    json_kv_string(j, "kind", r->kind);
    json_kv_string(j, "created", r->created);
    json_kv_string(j, "subject", r->subject);
    json_kv_string(j, "sha256", r->sha256);
    json_kv_string(j, "runtime", r->runtime);
    json_kv_string(j, "host", r->host);
    json_kv_string(j, "hostname", r->hostname);
    json_kv_string(j, "commit", r->commit);
    json_kv_string(j, "branch", r->branch);
    json_kv_uint(j, "cases", r->cases);
    json_kv_uint(j, "bytes", r->bytes);
    json_key(j, "tags");
    json_array_begin_flat(j);
    for (const char *at = r->tags; at && *at;) {
        char one[STORE_NAME_MAX + 16]; /* "baseline:" may stand before it */
        size_t n = strcspn(at, ",");
        snprintf(one, sizeof one, "%.*s", (int)n, at);
        json_put_string(j, one);
        at += n + (at[n] == ',');
    }
    json_array_end(j);
    json_object_end(j);
}

void store_series_json(struct json *j, const struct store_series_name *n)
{
    json_object_begin(j);
    json_kv_int(j, "id", n->id);
    json_kv_string(j, "subject", n->subject);
    json_kv_string(j, "case", n->case_name);
    json_kv_string(j, "metric", n->metric);
    json_kv_string(j, "anchor", n->anchor);
    json_kv_string(j, "host", n->host);
    json_kv_string(j, "hostname", n->hostname);
    json_kv_uint(j, "points", n->points);
    json_object_end(j);
}

static void put_known(struct json *j, const char *key, struct known_f64 v)
{
    if (v.known)
        json_kv_double(j, key, v.v);
    else
        json_kv_null(j, key);
}

void store_point_json(struct json *j, const struct store_point *p)
{
    json_object_begin(j);
    json_kv_string(j, "run", p->run);
    json_kv_int(j, "created_ms", p->created_ms);
    json_kv_double(j, "value", p->value);
    put_known(j, "lo", p->lo);
    put_known(j, "hi", p->hi);
    if (p->samples.known)
        json_kv_uint(j, "samples", p->samples.v);
    else
        json_kv_null(j, "samples");
    json_kv_string(j, "commit", p->commit[0] ? p->commit : NULL);
    json_kv_string(j, "branch", p->branch[0] ? p->branch : NULL);
    if (p->dirty.known)
        json_kv_bool(j, "dirty", p->dirty.v);
    else
        json_kv_null(j, "dirty");
    json_object_end(j);
}

/* ---- documents ---- */

/* Level 3 would be 1 % smaller and 12 to 18 % slower than 1. Of a small text most of the time goes into tables for its
 * entropy, which levels below 0 leave out; it shares a page of the store with others either way. */
enum { SMALL_TEXT = 4096 };

/* The frame carries a checksum: what was damaged on the disk is told, not returned. */
static tare_status compress(struct store *s, struct store_body text, struct buf *out, tare_error *err)
{
    size_t bound = ZSTD_compressBound(text.size), n = 0;
    if (!s->packer) s->packer = ZSTD_createCCtx();
    if (!s->packer || buf_reserve(out, bound) < 0)
        return error_set(err, TARE_NOMEM, "out of memory to keep a document of %zu bytes", text.size);
    ZSTD_CCtx_setParameter(s->packer, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setParameter(s->packer, ZSTD_c_compressionLevel, text.size <= SMALL_TEXT ? -1 : 1);
    n = ZSTD_compress2(s->packer, out->data, bound, text.data, text.size);
    if (ZSTD_isError(n))
        return error_set(err, TARE_NOMEM, "compressing a document: %s", ZSTD_getErrorName(n));
    out->len = n;
    return TARE_OK;
}

static tare_status decompress(const struct buf *body, struct buf *text, const char *what, tare_error *err)
{
    unsigned long long size = ZSTD_getFrameContentSize(body->data, body->len);
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > RUN_BYTES_MAX)
        return error_set(err, TARE_FORMAT, "%s: damaged: no document that tare wrote", what);
    if (buf_reserve(text, (size_t)size + 1) < 0) return buf_status(text, err);
    size_t n = ZSTD_decompress(text->data + text->len, (size_t)size, body->data, body->len);
    if (ZSTD_isError(n) || n != size)
        return error_set(err, TARE_FORMAT, "%s: damaged: %s", what,
                         ZSTD_isError(n) ? ZSTD_getErrorName(n) : "shorter than it says");
    text->len += n;
    text->data[text->len] = 0;
    return TARE_OK;
}

tare_status store_document(struct store *s, const char *id, struct buf *text, tare_error *err)
{
    struct buf body = BUF_INIT;
    char what[600];
    if (s->ops->plain) return s->ops->body(s, id, text, err);
    snprintf(what, sizeof what, "%s: run %s", s->where, id);
    tare_status status = s->ops->body(s, id, &body, err);
    if (status == TARE_OK) status = decompress(&body, text, what, err);
    buf_release(&body);
    return status;
}

struct unpacking {
    struct store *s;
    struct store_health *h;
};

static tare_status unpack_one(void *ctx, const struct store_run *run, tare_error *err)
{
    struct unpacking *u = ctx;
    struct buf text = BUF_INIT;
    tare_error why = TARE_ERROR_INIT;
    tare_status status = store_document(u->s, run->id, &text, &why);
    buf_release(&text);
    if (status == TARE_OK) return TARE_OK;
    if (status != TARE_FORMAT) return error_set(err, status, "%s", why.text);
    if (!u->h->trouble[0]) snprintf(u->h->trouble, sizeof u->h->trouble, "%.299s", why.text);
    return TARE_OK;
}

tare_status store_check(struct store *s, struct store_health *h, tare_error *err)
{
    struct unpacking u = {s, h};
    struct store_filter all = {0};
    tare_status status = s->ops->check(s, h, err);
    return status == TARE_OK && !h->trouble[0] ? s->ops->list(s, &all, unpack_one, &u, err) : status;
}

/* ---- from a run to rows ---- */

static const char *config_text(const struct run *run, const char *key)
{
    const struct run_value *v = run_map_get(&run->config, key);
    return v && v->kind == RUN_TEXT ? v->s : NULL;
}

/* The context the caller knows, else what the document itself says of its origin. */
static void describe(struct store_run *about, const struct run *run, const struct store_context *c,
                     char host[RUN_FINGERPRINT_SIZE], char runtime[128])
{
    const struct run_runtime *rt = &run->subject.runtime;
    if (!run->host.fingerprint) run_host_fingerprint(&run->host, host);
    if (rt->known)
        snprintf(runtime, 128, "%s%s%s", rt->name ? rt->name : "?", rt->version ? " " : "",
                 rt->version ? rt->version : "");
    *about = (struct store_run){
        .id = run->id,
        .kind = run->kind,
        .created = run->created,
        .subject = run->subject.name,
        .sha256 = run->subject.sha256,
        .runtime = rt->known ? runtime : NULL,
        .host = run->host.fingerprint ? run->host.fingerprint : host,
        .hostname = run->host.hostname,
        .commit = c->commit ? c->commit : config_text(run, "git_commit"),
        .branch = c->branch ? c->branch : config_text(run, "git_branch"),
        .project = c->project,
        .dirty = c->dirty,
        .created_ms = run_unix_ms(run->created),
        .cases = run->cases.n,
    };
}

struct values {
    VEC(struct store_value) at;
};

static struct known_f64 ln_of(struct known_f64 v)
{
    return v.known && v.v > 0 ? known_f64(log(v.v)) : (struct known_f64){0};
}

/* A ratio that the document itself tells; one of 0 has no logarithm. */
static tare_status add_ratio(struct values *to, const struct run_case *c, const struct run_anchored *a,
                             tare_error *err)
{
    const struct measure *m = measure_find(a->metric);
    struct store_value v = {
        c->name, m ? m->name : NULL, a->anchor, log(a->ratio.value), ln_of(a->ratio.lo), ln_of(a->ratio.hi),
        a->pairs};
    if (!m || !(a->ratio.value > 0) || !isfinite(v.value)) return TARE_OK;
    return vec_push(&to->at, v, err);
}

static tare_status add_case(struct values *to, const struct run_case *c, tare_error *err)
{
    tare_status s = TARE_OK;
    for (const struct measure *m = measure_table; m->name && s == TARE_OK; m++) {
        struct run_estimate e = {0};
        if (!measure_of(c, m, &e)) continue;
        struct store_value v = {c->name, m->name, "", e.value, e.lo, e.hi, c->samples};
        s = vec_push(&to->at, v, err);
    }
    for (size_t i = 0; i < c->anchored.n && s == TARE_OK; i++) s = add_ratio(to, c, c->anchored.at[i], err);
    return s;
}

static tare_status gather(struct values *to, const struct run *run, const struct store_context *c,
                          tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; i < run->cases.n && s == TARE_OK; i++) s = add_case(to, run->cases.at[i], err);
    for (size_t i = 0; i < c->n_ratios && s == TARE_OK; i++) {
        const struct store_ratio *r = &c->ratios[i];
        if (!r->ln.known || !isfinite(r->ln.value) || !r->anchor[0])
            return error_set(err, TARE_INVALID,
                             "case %s: a ratio to an anchor that is no number, or no anchor", r->case_name);
        struct store_value v = {r->case_name, r->metric, r->anchor, r->ln.value,
                                r->ln.lo,     r->ln.hi,  r->samples};
        s = vec_push(&to->at, v, err);
    }
    return s;
}

/* All that can fail for other reasons comes before ops->add(): the lock on the store is held only for the
 * write itself. `values` and `body` are borrowed by the entry until then. */
static tare_status add_text(struct store *s, const struct run *run, const struct store_context *c,
                            bool *added, tare_error *err)
{
    char host[RUN_FINGERPRINT_SIZE], runtime[128] = "";
    struct values values = {VEC_INIT};
    struct buf body = BUF_INIT;
    struct store_entry e = {.body = c->text};
    if (s->ops->plain) return s->ops->add(s, &e, added, err);
    tare_status status = compress(s, c->text, &body, err);
    if (status == TARE_OK) status = gather(&values, run, c, err);
    if (status == TARE_OK) {
        describe(&e.about, run, c, host, runtime);
        e.about.bytes = c->text.size;
        e.body = (struct store_body){body.data, body.len};
        e.values = values.at.items;
        e.n_values = values.at.n;
        status = s->ops->add(s, &e, added, err);
    }
    vec_release(&values.at);
    buf_release(&body);
    return status;
}

tare_status store_add_run(struct store *s, const struct run *run, const struct store_context *c, bool *added,
                          tare_error *err)
{
    struct store_context all = c ? *c : (struct store_context){0};
    struct buf text = BUF_INIT;
    tare_status status = all.text.data ? TARE_OK : run_write(run, &text, err);
    if (!all.text.data) all.text = (struct store_body){text.data, text.len};
    if (status == TARE_OK) status = add_text(s, run, &all, added, err);
    buf_release(&text);
    return status;
}

/* ---- one run by name ---- */

struct found {
    char id[2][ULID_SIZE];
    size_t n;
};

static tare_status note_id(void *ctx, const struct store_run *run, tare_error *err)
{
    struct found *f = ctx;
    (void)err;
    if (f->n < 2) snprintf(f->id[f->n], ULID_SIZE, "%s", run->id);
    f->n++;
    return TARE_OK;
}

/* Two runs are asked for, not one: a prefix that fits several must be refused and never be taken for the
 * newest. Ids are upper case, and users type them either way. */
tare_status store_find(struct store *s, const char *prefix, char id[ULID_SIZE], tare_error *err)
{
    struct found found = {.n = 0};
    char upper[ULID_SIZE] = "";
    bool latest = strcmp(prefix, "latest") == 0;
    struct store_filter f = {.limit = latest ? 1 : 2, .id_prefix = latest ? NULL : upper};
    if (!latest && (!*prefix || strlen(prefix) > ULID_LEN))
        return error_set(err, TARE_INVALID, "'%.40s' is not the beginning of a run's id (tare history lists them)",
                         prefix);
    for (size_t i = 0; !latest && prefix[i]; i++)
        upper[i] = (char)(prefix[i] >= 'a' && prefix[i] <= 'z' ? prefix[i] - 'a' + 'A' : prefix[i]);
    tare_status status = s->ops->list(s, &f, note_id, &found, err);
    if (status != TARE_OK) return status;
    if (found.n == 0)
        return error_set(err, TARE_INVALID, 
                         latest ? "%s: holds no run" : "%s: has no run %s (tare history lists them)", s->where,
                         prefix);
    if (found.n > 1)
        return error_set(err, TARE_INVALID, "%s: several runs begin with %s: %s, %s, ..", s->where, prefix,
                         found.id[0], found.id[1]);
    memcpy(id, found.id[0], ULID_SIZE);
    return TARE_OK;
}

tare_status store_pinned(struct store *s, const struct store_pin *p, char id[ULID_SIZE], tare_error *err)
{
    struct found found = {.n = 0};
    char tag[STORE_NAME_MAX + 16];
    struct store_filter f = {.subject = p->subject, .tag = tag, .project = p->project, .limit = 1};
    if (s->ops->pinned) return s->ops->pinned(s, p, id, err);
    snprintf(tag, sizeof tag, "baseline:%s", p->name);
    tare_status status = s->ops->list(s, &f, note_id, &found, err);
    memcpy(id, found.n ? found.id[0] : "", found.n ? ULID_SIZE : 1);
    return status;
}

tare_status store_baseline_of(struct store *s, const struct store_pin *p, char id[ULID_SIZE], tare_error *err)
{
    if (!store_name_ok(p->name))
        return error_set(err, TARE_INVALID, "'%.80s' is no name of a baseline", p->name);
    tare_status status = store_pinned(s, p, id, err);
    if (status != TARE_OK) return status;
    if (!id[0])
        return error_set(err, TARE_INVALID, 
                         "%s: no baseline %s%s%s (tare history lists the runs, tare history baseline %s ID makes "
                         "one of them the baseline)",
                         s->where, p->name, p->subject ? " of " : "", p->subject ? p->subject : "", p->name);
    return TARE_OK;
}

tare_status store_baseline(struct store *s, const char *name, const char *subject, char id[ULID_SIZE],
                           tare_error *err)
{
    return store_baseline_of(s, &(struct store_pin){name, subject, NULL}, id, err);
}

/* ---- pruning ---- */

struct doomed {
    struct store_prune *p;
    struct map_str seen; /* subject -> runs so far, newest first */
    struct arena texts;
    VEC(struct store_run) runs; /* id, created and subject of those that go */
};

/* Runs come newest first, so that counting them per subject tells which are among the last. `keep` and an
 * age both protect, and so does a tag: that one is counted, for the user to see why more is left than
 * asked. */
static tare_status consider(void *ctx, const struct store_run *run, tare_error *err)
{
    struct doomed *d = ctx;
    uint64_t *count = NULL;
    tare_status s = map_str_ref(&d->seen, run->subject, strlen(run->subject), &count, err);
    if (s != TARE_OK) return s;
    bool stays =
        (d->p->keep && (*count)++ < d->p->keep) || (d->p->older_ms && run->created_ms >= d->p->older_ms);
    if (stays) return TARE_OK;
    if (run->tags) {
        d->p->pinned++;
        return TARE_OK;
    }
    d->p->removed++;
    struct store_run one = {.id = arena_str(&d->texts, run->id),
                            .created = arena_str(&d->texts, run->created),
                            .subject = arena_str(&d->texts, run->subject)};
    return d->texts.failed ? error_nomem(err, "runs to remove") : vec_push(&d->runs, one, err);
}

/* Look and delete are one change: a tag that appears between them would be lost otherwise. What went is told when it is
 * gone for good: a change that fails at its very end (a full disk) has removed nothing. */
tare_status store_prune(struct store *s, struct store_prune *p, tare_error *err)
{
    struct doomed d = {.p = p, .seen = MAP_STR_INIT, .texts = ARENA_INIT, .runs = VEC_INIT};
    struct store_filter all = {0};
    p->removed = p->pinned = 0;
    if (!p->keep && !p->older_ms) return error_set(err, TARE_INVALID, "nothing says what shall go");
    tare_status status = s->ops->begin(s, err);
    if (status != TARE_OK) return status;
    status = s->ops->list(s, &all, consider, &d, err);
    for (size_t i = 0; i < d.runs.n && status == TARE_OK && !p->dry_run; i++)
        status = s->ops->remove(s, d.runs.items[i].id, err);
    tare_status end = s->ops->end(s, status == TARE_OK, status == TARE_OK ? err : NULL);
    if (status == TARE_OK) status = end;
    if (status != TARE_OK) p->removed = p->pinned = 0;
    for (size_t i = 0; i < d.runs.n && status == TARE_OK && p->gone; i++)
        status = p->gone(p->ctx, &d.runs.items[i], err);
    vec_release(&d.runs);
    arena_release(&d.texts);
    map_str_release(&d.seen);
    return status;
}

/* ---- one series ---- */

struct one_series {
    int64_t id;
    size_t n;
};

static tare_status note_series(void *ctx, const struct store_series_name *name, tare_error *err)
{
    struct one_series *one = ctx;
    (void)err;
    one->id = name->id;
    one->n++;
    return TARE_OK;
}

tare_status store_series(struct store *s, const struct store_query *q, uint64_t last,
                         struct store_points *out, tare_error *err)
{
    struct one_series one = {0};
    out->at.n = 0;
    tare_status status = s->ops->names(s, q, note_series, &one, err);
    if (status != TARE_OK || one.n == 0) return status;
    if (one.n > 1)
        return error_set(err, TARE_INVALID, "%s: %zu series fit: name subject, case, metric and host",
                         s->where, one.n);
    return s->ops->series(s, &(struct store_span){one.id, last, q->project}, out, err);
}

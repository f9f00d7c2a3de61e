/* SPDX-License-Identifier: MIT
 * audit.c - the chain of entries, and the notes that wait for the writer. */
#include "server/access/audit.h"

#include <openssl/sha.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"
#include "core/str.h"
#include "server/route.h"

/* ---- the chain ---- */

enum { TEXTS = 6 };

static void texts_of(struct store_audit *e, const char **out[TEXTS])
{
    const char **const all[TEXTS] = {&e->who, &e->what, &e->about, &e->project, &e->source, &e->request};
    memcpy(out, all, sizeof all);
}

static void add_number(struct buf *out, uint64_t v)
{
    for (int i = 0; i < 8; i++) buf_add_char(out, (char)(v >> 8 * i & 255));
}

/* The hash before, then every member: numbers as 8 bytes, texts behind their length, so that no two entries have the
 * same bytes. */
static tare_status hash_entry(const struct store_audit *e, const uint8_t before[STORE_HASH_SIZE],
                              uint8_t out[STORE_HASH_SIZE], tare_error *err)
{
    struct buf bytes = BUF_INIT;
    struct store_audit copy = *e;
    const char **texts[TEXTS];
    texts_of(&copy, texts);
    buf_add(&bytes, (const char *)before, STORE_HASH_SIZE);
    add_number(&bytes, (uint64_t)e->seq);
    add_number(&bytes, (uint64_t)e->at_ms);
    add_number(&bytes, e->status);
    for (int i = 0; i < TEXTS; i++) {
        const char *text = *texts[i];
        add_number(&bytes, text ? strlen(text) : UINT64_MAX);
        if (text) buf_add_str(&bytes, text);
    }
    tare_status s = buf_status(&bytes, err);
    if (s == TARE_OK) SHA256((const unsigned char *)bytes.data, bytes.len, out);
    buf_release(&bytes);
    return s;
}

/* Nothing that could forge a line of a list or move a terminal's cursor gets in. */
static const char *escaped(struct arena *a, const char *text)
{
    struct buf out = BUF_INIT;
    size_t n = strlen(text);
    for (size_t i = 0; i < n;) {
        uint32_t cp = 0;
        size_t k = str_decode(text + i, n - i, &cp);
        if (k && !str_is_control(cp))
            buf_add(&out, text + i, k);
        else
            buf_printf(&out, "\\x%02x", (unsigned char)text[i]);
        for (size_t j = 1; k && str_is_control(cp) && j < k; j++)
            buf_printf(&out, "\\x%02x", (unsigned char)text[i + j]);
        i += k ? k : 1;
    }
    buf_add_char(&out, 0);
    const char *kept = out.failed ? NULL : arena_str(a, out.data);
    buf_release(&out);
    return kept;
}

struct last {
    int64_t seq;
    uint8_t hash[STORE_HASH_SIZE];
};

static tare_status see_last(void *ctx, const struct store_audit *e, tare_error *err)
{
    struct last *last = ctx;
    (void)err;
    last->seq = e->seq;
    memcpy(last->hash, e->hash, sizeof last->hash);
    return TARE_OK;
}

tare_status audit_add(struct store *s, const struct store_audit *entry, tare_error *err)
{
    struct store_audit e = *entry;
    struct arena arena = ARENA_INIT;
    struct last last = {0};
    struct store_audit_filter newest = {.newest_first = true, .limit = 1};
    const char **texts[TEXTS];
    tare_status status = s->ops->audit_seq(s, true, &e.seq, err); /* first: others wait from here on */
    if (status == TARE_OK) status = s->ops->audits(s, &newest, see_last, &last, err);
    texts_of(&e, texts);
    for (int i = 0; i < TEXTS && status == TARE_OK; i++)
        if (*texts[i] && !(*texts[i] = escaped(&arena, *texts[i]))) status = error_nomem(err, "the audit");
    if (!e.at_ms) e.at_ms = (int64_t)(clock_unix_ns() / 1000000);
    if (status == TARE_OK) status = hash_entry(&e, last.hash, e.hash, err);
    if (status == TARE_OK) status = s->ops->audit_add(s, &e, err);
    arena_release(&arena);
    return status;
}

tare_status audit_add_local(struct store *s, const char *what, const char *about, const char *project,
                            tare_error *err)
{
    char who[32];
    snprintf(who, sizeof who, "user %lu", (unsigned long)getuid());
    struct store_audit e = {
        .who = who, .what = what, .about = about, .project = project, .source = "command", .status = 200};
    return audit_add(s, &e, err);
}

/* ---- verifying ---- */

struct verifying {
    struct audit_report *report;
    const char *noted, *where;
    struct last last;
    bool seen;
};

static void to_hex(const uint8_t hash[STORE_HASH_SIZE], char out[AUDIT_HEX_SIZE])
{
    for (size_t i = 0; i < STORE_HASH_SIZE; i++) snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

static tare_status verify_one(void *ctx, const struct store_audit *e, tare_error *err)
{
    struct verifying *v = ctx;
    uint8_t hash[STORE_HASH_SIZE];
    if (e->seq != v->last.seq + 1)
        return error_set(err, TARE_FORMAT, "%s: the audit has no entry %lld: after %lld comes %lld", v->where,
                         (long long)v->last.seq + 1, (long long)v->last.seq, (long long)e->seq);
    tare_status s = hash_entry(e, v->last.hash, hash, err);
    if (s != TARE_OK) return s;
    if (memcmp(hash, e->hash, sizeof hash) != 0)
        return error_set(err, TARE_FORMAT, "%s: entry %lld of the audit is not as it was written", v->where,
                         (long long)e->seq);
    v->last.seq = e->seq;
    memcpy(v->last.hash, hash, sizeof hash);
    to_hex(hash, v->report->head);
    v->report->entries++;
    if (v->noted && strcmp(v->noted, v->report->head) == 0) v->seen = true;
    return TARE_OK;
}

tare_status audit_verify(struct store *s, const char *noted, struct audit_report *out, tare_error *err)
{
    struct verifying v = {.report = out, .noted = noted, .where = s->where};
    *out = (struct audit_report){0};
    int64_t seq = 0;
    tare_status status = s->ops->audit_seq(s, false, &seq, err); /* before: a server may add some meanwhile */
    if (status == TARE_OK) status = s->ops->audits(s, &(struct store_audit_filter){0}, verify_one, &v, err);
    if (status == TARE_OK && v.last.seq < seq)
        return error_set(err, TARE_FORMAT, "%s: the audit has no entry %lld: it ends too early", s->where,
                         (long long)v.last.seq + 1);
    if (status == TARE_OK && noted && !v.seen)
        return error_set(err, TARE_FORMAT,
                         "%s: the head %.16s... that was noted is not in the audit: it was written anew",
                         s->where, noted);
    return status;
}

void audit_json(struct json *j, const struct store_audit *e)
{
    char hash[AUDIT_HEX_SIZE];
    to_hex(e->hash, hash);
    json_object_begin(j);
    json_kv_int(j, "seq", e->seq);
    reply_time(j, "at", e->at_ms);
    json_kv_string(j, "who", e->who);
    json_kv_string(j, "what", e->what);
    json_kv_string(j, "about", e->about);
    json_kv_string(j, "project", e->project);
    json_kv_string(j, "from", e->source);
    json_kv_string(j, "request", e->request);
    json_kv_uint(j, "status", e->status);
    json_kv_string(j, "hash", hash);
    json_object_end(j);
}

/* ---- of an exchange ---- */

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

/* The texts of the entry are borrowed from `room`. */
struct audit_room {
    char what[160], source[INET6_ADDRSTRLEN];
};

static struct store_audit entry_of(const struct exchange *x, struct audit_room *room)
{
    snprintf(room->what, sizeof room->what, "%s %s", http_method_name(x->head.method), x->route->path);
    address_text(&x->peer, room->source);
    return (struct store_audit){.who = or_null(x->who),
                                .what = room->what,
                                .about = or_null(x->param),
                                .project = or_null(x->project),
                                .source = room->source,
                                .request = x->id,
                                .status = x->reply.status};
}

tare_status audit_exchange(struct store *s, const struct exchange *x, tare_error *err)
{
    struct audit_room room;
    struct store_audit e = entry_of(x, &room);
    return audit_add(s, &e, err);
}

/* ---- notes ---- */

enum { NOTES_MAX = 256 };

struct note {
    bool use; /* of the token `who`; else a refusal */
    int64_t at_ms;
    unsigned status;
    struct audit_room room;
    char who[EXCHANGE_WHO_SIZE], about[EXCHANGE_PARAM_SIZE], project[EXCHANGE_PARAM_SIZE],
        request[EXCHANGE_ID_SIZE];
};

struct notes {
    pthread_mutex_t lock;
    unsigned n, taken;                 /* the writer wrote the first `taken` */
    uint64_t unlisted, unlisted_taken; /* refusals beyond what fits */
    struct note at[NOTES_MAX];
};

tare_status notes_open(struct notes **out, tare_error *err)
{
    struct notes *n = mem_new(1, sizeof *n);
    if (!n) return error_nomem(err, "the audit");
    pthread_mutex_init(&n->lock, NULL);
    *out = n;
    return TARE_OK;
}

void notes_close(struct notes *n)
{
    if (!n) return;
    pthread_mutex_destroy(&n->lock);
    mem_free(n);
}

static bool put(struct notes *n, const struct note *note)
{
    pthread_mutex_lock(&n->lock);
    bool fits = n->n < NOTES_MAX;
    if (fits) n->at[n->n++] = *note;
    if (!fits && !note->use) n->unlisted++;
    pthread_mutex_unlock(&n->lock);
    return fits;
}

void notes_refused(struct notes *n, const struct exchange *x)
{
    struct note note = {.at_ms = (int64_t)(clock_unix_ns() / 1000000), .status = x->reply.status};
    entry_of(x, &note.room);
    memcpy(note.who, x->who, sizeof note.who);
    memcpy(note.about, x->param, sizeof note.about);
    memcpy(note.project, x->project, sizeof note.project);
    memcpy(note.request, x->id, sizeof note.request);
    put(n, &note);
}

void notes_unlisted(struct notes *n)
{
    pthread_mutex_lock(&n->lock);
    n->unlisted++;
    pthread_mutex_unlock(&n->lock);
}

void notes_used(struct notes *n, const char *token, int64_t now_ms)
{
    struct note note = {.use = true, .at_ms = now_ms};
    snprintf(note.who, sizeof note.who, "%s", token);
    put(n, &note);
}

static tare_status write_note(struct store *s, const struct note *n, tare_error *err)
{
    struct store_audit e = {.at_ms = n->at_ms,
                            .who = or_null(n->who),
                            .what = n->room.what,
                            .about = or_null(n->about),
                            .project = or_null(n->project),
                            .source = n->room.source,
                            .request = n->request,
                            .status = n->status};
    return n->use ? s->ops->token_used(s, n->who, n->at_ms, err) : audit_add(s, &e, err);
}

static tare_status write_unlisted(struct store *s, uint64_t unlisted, tare_error *err)
{
    char count[24];
    snprintf(count, sizeof count, "%llu", (unsigned long long)unlisted);
    struct store_audit e = {.what = "more requests were refused than are listed", .about = count, .status = 401};
    return audit_add(s, &e, err);
}

/* Entries that are in do not move until notes_written(): the lock is not held while the disk works. */
tare_status notes_write(struct notes *n, struct store *s, tare_error *err)
{
    tare_status status = TARE_OK;
    pthread_mutex_lock(&n->lock);
    n->taken = n->n;
    n->unlisted_taken = n->unlisted;
    pthread_mutex_unlock(&n->lock);
    for (unsigned i = 0; i < n->taken && status == TARE_OK; i++) status = write_note(s, &n->at[i], err);
    if (status == TARE_OK && n->unlisted_taken) status = write_unlisted(s, n->unlisted_taken, err);
    return status;
}

void notes_written(struct notes *n)
{
    pthread_mutex_lock(&n->lock);
    n->n -= n->taken;
    memmove(n->at, n->at + n->taken, n->n * sizeof *n->at);
    n->unlisted -= n->unlisted_taken;
    n->taken = 0;
    n->unlisted_taken = 0;
    pthread_mutex_unlock(&n->lock);
}

bool notes_any(struct notes *n)
{
    pthread_mutex_lock(&n->lock);
    bool any = n->n || n->unlisted;
    pthread_mutex_unlock(&n->lock);
    return any;
}

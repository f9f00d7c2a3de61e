/* SPDX-License-Identifier: MIT
 * token.c - making tokens and knowing them again. Never writes one anywhere but into its caller's memory. */
#include "server/access/token.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/clock.h"
#include "core/mem.h"

/* ---- scopes ---- */

static const struct {
    const char *name;
    unsigned bit;
} scope_names[] = {
    {"read", SCOPE_READ}, {"ingest", SCOPE_INGEST}, {"run", SCOPE_RUN}, {"admin", SCOPE_ADMIN}};

enum { N_SCOPES = sizeof scope_names / sizeof *scope_names };

tare_status scopes_parse(const char *text, unsigned *out, tare_error *err)
{
    unsigned scopes = 0;
    for (const char *at = text;;) {
        size_t n = strcspn(at, ","), i = 0;
        while (i < N_SCOPES && (strlen(scope_names[i].name) != n || strncmp(scope_names[i].name, at, n) != 0))
            i++;
        if (i == N_SCOPES)
            return error_set(err, TARE_INVALID, "'%.*s' is no scope (read, ingest, run, admin)",
                             (int)(n > 40 ? 40 : n), at);
        scopes |= scope_names[i].bit;
        if (!at[n]) break;
        at += n + 1;
    }
    *out = scopes;
    return TARE_OK;
}

void scopes_print(unsigned scopes, char separator, char out[TOKEN_SCOPES_SIZE])
{
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i < N_SCOPES; i++) {
        if (!(scopes & scope_names[i].bit)) continue;
        if (used) out[used++] = separator;
        used += (size_t)snprintf(out + used, TOKEN_SCOPES_SIZE - used, "%s", scope_names[i].name);
    }
}

/* ---- making one ---- */

tare_status token_random(char *out, size_t digits, tare_error *err)
{
    unsigned char bytes[TOKEN_SECRET_LEN / 2];
    size_t n = digits / 2;
    if (getrandom(bytes, n, 0) != (ssize_t)n) return error_errno(err, "the kernel gives no random bytes");
    for (size_t i = 0; i < n; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    OPENSSL_cleanse(bytes, sizeof bytes);
    return TARE_OK;
}

void token_id(const char text[TOKEN_SIZE], char id[TOKEN_ID_LEN + 1])
{
    memcpy(id, text + strlen(text) - TOKEN_SECRET_LEN - 1 - TOKEN_ID_LEN, TOKEN_ID_LEN);
    id[TOKEN_ID_LEN] = 0;
}

tare_status token_new(struct store *s, const struct token_wish *wish, char text[TOKEN_SIZE], tare_error *err)
{
    char id[TOKEN_ID_LEN + 1], secret[TOKEN_SECRET_LEN + 1], scopes[TOKEN_SCOPES_SIZE];
    tare_status status = token_random(id, TOKEN_ID_LEN, err);
    if (status == TARE_OK) status = token_random(secret, TOKEN_SECRET_LEN, err);
    if (status != TARE_OK) return status;
    scopes_print(wish->scopes, '-', scopes);
    snprintf(text, TOKEN_SIZE, "tare_%s_%s_%s", scopes, id, secret);
    OPENSSL_cleanse(secret, sizeof secret);
    scopes_print(wish->scopes, ',', scopes);
    int64_t now = (int64_t)(clock_unix_ns() / 1000000);
    struct store_token t = {
        .id = id, .name = wish->name, .project = wish->project, .scopes = scopes, .created_ms = now};
    if (wish->lives_ms) t.expires_ms = now + wish->lives_ms;
    SHA256((const unsigned char *)text, strlen(text), t.hash);
    return s->ops->token_add(s, &t, err);
}

/* ---- as lists show it ---- */

const char *token_state(const struct store_token *t, int64_t now_ms)
{
    if (t->revoked_ms) return "revoked";
    return t->expires_ms && t->expires_ms <= now_ms ? "expired" : "good";
}


void token_json(struct json *j, const struct store_token *t, int64_t now_ms)
{
    json_object_begin(j);
    json_kv_string(j, "id", t->id);
    json_kv_string(j, "scopes", t->scopes);
    json_kv_string(j, "project", t->project);
    json_kv_string(j, "name", t->name);
    json_kv_string(j, "state", token_state(t, now_ms));
    reply_time(j, "created", t->created_ms);
    reply_time(j, "expires", t->expires_ms);
    reply_time(j, "used", t->used_ms);
    json_object_end(j);
}

/* ---- the table in memory ---- */

struct known_token {
    struct grant grant;
    uint8_t hash[STORE_HASH_SIZE];
    int64_t expires_ms, used_ms;
    bool revoked;
};

struct known_tokens {
    VEC(struct known_token) at; /* in order of their ids */
};

struct tokens {
    pthread_rwlock_t lock; /* over `known` */
    struct known_tokens known;
    pthread_mutex_t reading; /* over the rest */
    struct store *store;
    int64_t version;
    uint64_t read_ns; /* when the store was looked at last */
};

static tare_status note_token(void *ctx, const struct store_token *t, tare_error *err)
{
    struct known_tokens *to = ctx;
    struct known_token k = {
        .expires_ms = t->expires_ms, .used_ms = t->used_ms, .revoked = t->revoked_ms != 0};
    if (scopes_parse(t->scopes, &k.grant.scopes, err) != TARE_OK)
        return TARE_OK; /* of a newer tare: not for us */
    snprintf(k.grant.id, sizeof k.grant.id, "%s", t->id);
    snprintf(k.grant.project, sizeof k.grant.project, "%s", t->project ? t->project : "");
    memcpy(k.hash, t->hash, sizeof k.hash);
    return vec_push(&to->at, k, err);
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct known_token *)a)->grant.id, ((const struct known_token *)b)->grant.id);
}

/* A failure leaves what was known: a store that cannot be read must not lock everybody out. */
static tare_status look_again(struct tokens *t, bool at_once, tare_error *err)
{
    struct known_tokens fresh = {VEC_INIT};
    int64_t version = 0;
    uint64_t now = clock_raw_ns();
    tare_status s = TARE_OK;
    pthread_mutex_lock(&t->reading);
    if (at_once ||
        now - __atomic_load_n(&t->read_ns, __ATOMIC_RELAXED) >= TOKENS_FRESH_MS * UINT64_C(1000000)) {
        __atomic_store_n(&t->read_ns, now, __ATOMIC_RELAXED);
        s = t->store->ops->version(t->store, &version, err);
        if (s == TARE_OK && version != t->version)
            s = t->store->ops->tokens(t->store, note_token, &fresh, err);
        if (s == TARE_OK && version != t->version) {
            if (fresh.at.n) qsort(fresh.at.items, fresh.at.n, sizeof *fresh.at.items, by_id);
            t->version = version;
            pthread_rwlock_wrlock(&t->lock);
            struct known_tokens old = t->known;
            t->known = fresh;
            pthread_rwlock_unlock(&t->lock);
            fresh = old;
        }
    }
    pthread_mutex_unlock(&t->reading);
    vec_release(&fresh.at);
    return s;
}

static void look_again_if_due(struct tokens *t)
{
    uint64_t age = clock_raw_ns() - __atomic_load_n(&t->read_ns, __ATOMIC_RELAXED);
    if (age >= TOKENS_FRESH_MS * UINT64_C(1000000)) look_again(t, false, NULL);
}

tare_status tokens_open(struct tokens **out, const char *store, tare_error *err)
{
    struct tokens *t = mem_new(1, sizeof *t);
    if (!t) return error_nomem(err, "tokens");
    pthread_rwlock_init(&t->lock, NULL);
    pthread_mutex_init(&t->reading, NULL);
    t->version = -1;
    tare_status s = store_open(&t->store, store, &(struct store_options){.create = true}, err);
    if (s == TARE_OK) s = look_again(t, true, err);
    if (s != TARE_OK) {
        tokens_close(t);
        return s;
    }
    *out = t;
    return TARE_OK;
}

void tokens_close(struct tokens *t)
{
    if (!t) return;
    store_close(t->store);
    vec_release(&t->known.at);
    pthread_rwlock_destroy(&t->lock);
    pthread_mutex_destroy(&t->reading);
    mem_free(t);
}

/* The id within tare_SCOPES_ID_SECRET; false: it has not that form. */
static bool id_of(const char *text, char id[TOKEN_ID_LEN + 1])
{
    size_t n = strnlen(text, TOKEN_SIZE);
    if (n >= TOKEN_SIZE || n < 5 + TOKEN_ID_LEN + 1 + TOKEN_SECRET_LEN || strncmp(text, "tare_", 5) != 0)
        return false;
    const char *secret = text + n - TOKEN_SECRET_LEN, *at = secret - 1 - TOKEN_ID_LEN;
    if (secret[-1] != '_' || at[-1] != '_' || strspn(at, "0123456789abcdef") != TOKEN_ID_LEN ||
        strspn(secret, "0123456789abcdef") != TOKEN_SECRET_LEN)
        return false;
    memcpy(id, at, TOKEN_ID_LEN);
    id[TOKEN_ID_LEN] = 0;
    return true;
}

/* With the lock held. */
static struct known_token *look_up(struct tokens *t, const char *id)
{
    struct known_token key;
    memcpy(key.grant.id, id, sizeof key.grant.id);
    return t->known.at.n ? bsearch(&key, t->known.at.items, t->known.at.n, sizeof key, by_id) : NULL;
}

static bool find(struct tokens *t, const char *id, struct known_token *out)
{
    pthread_rwlock_rdlock(&t->lock);
    const struct known_token *k = look_up(t, id);
    if (k) *out = *k;
    pthread_rwlock_unlock(&t->lock);
    return k != NULL;
}

/* True once in a while: the store should hear of it. A clock that stepped back is no reason to be silent. */
static bool note_use(struct tokens *t, const struct known_token *k, int64_t now_ms)
{
    bool news = false;
    if (now_ms - k->used_ms < TOKENS_USED_MS && k->used_ms - now_ms < TOKENS_USED_MS) return false;
    pthread_rwlock_wrlock(&t->lock);
    struct known_token *here = look_up(t, k->grant.id);
    if (here && here->used_ms == k->used_ms) {
        here->used_ms = now_ms;
        news = true;
    }
    pthread_rwlock_unlock(&t->lock);
    return news;
}

/* Neither revoked nor expired. */
static bool stands(const struct known_token *k, int64_t now_ms)
{
    return !k->revoked && (!k->expires_ms || now_ms < k->expires_ms);
}

bool tokens_check(struct tokens *t, const char *text, struct grant *out)
{
    struct known_token k;
    uint8_t hash[STORE_HASH_SIZE];
    char id[TOKEN_ID_LEN + 1];
    if (!id_of(text, id)) return false;
    look_again_if_due(t);
    if (!find(t, id, &k)) {
        look_again(t, true, NULL); /* just made? */
        if (!find(t, id, &k)) return false;
    }
    SHA256((const unsigned char *)text, strlen(text), hash);
    int64_t now_ms = (int64_t)(clock_unix_ns() / 1000000);
    if (CRYPTO_memcmp(hash, k.hash, sizeof hash) != 0 || !stands(&k, now_ms)) return false;
    *out = k.grant;
    out->use_is_news = note_use(t, &k, now_ms);
    return true;
}

bool tokens_stands(struct tokens *t, const char *id)
{
    struct known_token k;
    look_again_if_due(t);
    return find(t, id, &k) && stands(&k, (int64_t)(clock_unix_ns() / 1000000));
}

/* SPDX-License-Identifier: MIT
 * login.c - a small table of sessions and the one login link. Secrets are kept as hashes only. */
#include "server/access/login.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"

struct kept_login {
    struct login about; /* used_ns 0: the place is free */
    uint8_t hash[STORE_HASH_SIZE];
};

struct logins {
    struct login_times times;
    pthread_mutex_t lock; /* over the rest */
    struct kept_login at[LOGINS_MAX];
    uint8_t link[STORE_HASH_SIZE];
    uint64_t link_ends_ns; /* 0: there is no link */
};

uint64_t login_clock(void)
{
    return clock_cpu_ns(CLOCK_BOOTTIME);
}

tare_status logins_open(struct logins **out, const struct login_times *times, tare_error *err)
{
    struct logins *s = mem_new(1, sizeof *s);
    if (!s) return error_nomem(err, "sessions");
    s->times = *times;
    pthread_mutex_init(&s->lock, NULL);
    *out = s;
    return TARE_OK;
}

void logins_close(struct logins *s)
{
    if (!s) return;
    pthread_mutex_destroy(&s->lock);
    OPENSSL_cleanse(s, sizeof *s);
    mem_free(s);
}

static void hash_of(const char *text, uint8_t out[STORE_HASH_SIZE])
{
    SHA256((const unsigned char *)text, strlen(text), out);
}

/* ---- the link ---- */

tare_status logins_link(struct logins *s, uint64_t now_ns, char once[LOGIN_TEXT_SIZE], tare_error *err)
{
    tare_status status = token_random(once, TOKEN_SECRET_LEN, err);
    if (status != TARE_OK) return status;
    pthread_mutex_lock(&s->lock);
    hash_of(once, s->link);
    s->link_ends_ns = now_ns + s->times.link_ns;
    pthread_mutex_unlock(&s->lock);
    return TARE_OK;
}

bool logins_redeem(struct logins *s, const char *once, uint64_t now_ns)
{
    uint8_t hash[STORE_HASH_SIZE];
    hash_of(once, hash);
    pthread_mutex_lock(&s->lock);
    bool good = now_ns < s->link_ends_ns && CRYPTO_memcmp(hash, s->link, sizeof hash) == 0;
    if (good) s->link_ends_ns = 0;
    pthread_mutex_unlock(&s->lock);
    return good;
}

/* ---- sessions ---- */

static bool is_over(const struct logins *s, const struct login *a, uint64_t now_ns)
{
    return now_ns - a->began_ns >= s->times.longest_ns || now_ns - a->used_ns >= s->times.idle_ns;
}

static struct kept_login *find(struct logins *s, const char *cookie)
{
    uint8_t hash[STORE_HASH_SIZE];
    hash_of(cookie, hash);
    for (size_t i = 0; i < LOGINS_MAX; i++)
        if (s->at[i].about.used_ns && CRYPTO_memcmp(hash, s->at[i].hash, sizeof hash) == 0) return &s->at[i];
    return NULL;
}

/* A free place has never been used: it is the one that waited longest. */
static struct kept_login *place(struct logins *s)
{
    struct kept_login *found = &s->at[0];
    for (size_t i = 1; i < LOGINS_MAX; i++)
        if (s->at[i].about.used_ns < found->about.used_ns) found = &s->at[i];
    return found;
}

tare_status logins_begin(struct logins *s, const struct login *as, char cookie[LOGIN_TEXT_SIZE],
                         tare_error *err)
{
    tare_status status = token_random(cookie, TOKEN_SECRET_LEN, err);
    if (status != TARE_OK) return status;
    pthread_mutex_lock(&s->lock);
    struct kept_login *k = place(s);
    k->about = *as;
    k->about.used_ns = as->began_ns;
    hash_of(cookie, k->hash);
    pthread_mutex_unlock(&s->lock);
    return TARE_OK;
}

bool logins_check(struct logins *s, const char *cookie, uint64_t now_ns, struct login *out)
{
    pthread_mutex_lock(&s->lock);
    struct kept_login *k = find(s, cookie);
    bool good = k && !is_over(s, &k->about, now_ns);
    if (k && !good) *k = (struct kept_login){0};
    if (good) {
        k->about.used_ns = now_ns;
        *out = k->about;
    }
    pthread_mutex_unlock(&s->lock);
    return good;
}

bool logins_end(struct logins *s, const char *cookie)
{
    pthread_mutex_lock(&s->lock);
    struct kept_login *k = find(s, cookie);
    if (k) *k = (struct kept_login){0};
    pthread_mutex_unlock(&s->lock);
    return k != NULL;
}

/* ---- the cookie ---- */

bool login_cookie(const char *header, const char *name, char out[LOGIN_TEXT_SIZE])
{
    size_t length = strlen(name);
    for (const char *at = header; *at;) {
        at += strspn(at, "; ");
        size_t n = strcspn(at, ";");
        if (n == length + 1 + TOKEN_SECRET_LEN && strncmp(at, name, length) == 0 && at[length] == '=') {
            memcpy(out, at + length + 1, TOKEN_SECRET_LEN);
            out[TOKEN_SECRET_LEN] = 0;
            return strspn(out, "0123456789abcdef") == TOKEN_SECRET_LEN;
        }
        at += n;
    }
    return false;
}

/* SPDX-License-Identifier: MIT
 * site.c - names and places. A site gets its number in a session at first use; its texts are copied into the
 * live file at that moment, so the library that holds it may be unloaded later. */
#include <pthread.h>
#include <string.h>

#include "core/mem.h"
#include "trace/recorder.h"

enum { SITES_EXTENT_BYTES = 16 << 10, SITES_MAX = 1 << 20, DYNAMIC_MAX = 1 << 20 };

/* ---- numbering ---- */

static struct site_entry *entry_room(size_t bytes)
{
    bytes = (bytes + 7) & ~(size_t)7;
    struct extent *x = session.sites;
    if (!x || session.sites_used + bytes > x->bytes) {
        x = live_alloc(&session.live, session.live.base, EXTENT_SITES, SITES_EXTENT_BYTES);
        if (!x) return NULL;
        session.sites = x;
        session.sites_used = sizeof *x;
    }
    struct site_entry *e = (struct site_entry *)(void *)((char *)x + session.sites_used);
    session.sites_used += bytes;
    return e;
}

static size_t text_length(const char *s, size_t max)
{
    return s ? strnlen(s, max) : 0;
}

/* With the lock held. The entry is published by its length, the site by its id, each after all that it stands for. */
static uint64_t number(tare_site *site)
{
    uint64_t id = __atomic_load_n(&site->id, __ATOMIC_RELAXED);
    if (id >> 32 == session.number) return id; /* another thread was first */
    if (session.next_site >= SITES_MAX) return 0;
    size_t name = text_length(site->name, SITE_NAME_MAX), file = text_length(site->file, SITE_FILE_MAX);
    struct site_entry *e = entry_room(sizeof *e + name + file);
    if (!e) return 0;
    e->index = session.next_site++;
    e->line = site->line;
    e->kind = (uint16_t)site->kind;
    e->name_bytes = (uint16_t)name;
    e->file_bytes = (uint16_t)file;
    if (name) memcpy(e->text, site->name, name);
    if (file) memcpy(e->text + name, site->file, file);
    __atomic_store_n(&e->bytes, (uint32_t)((sizeof *e + name + file + 7) & ~(size_t)7), __ATOMIC_RELEASE);
    id = (uint64_t)session.number << 32 | e->index;
    __atomic_store_n(&site->id, id, __ATOMIC_RELEASE);
    return id;
}

uint64_t site_id(tare_site *site)
{
    uint64_t id = __atomic_load_n(&site->id, __ATOMIC_ACQUIRE);
    if (id >> 32 == __atomic_load_n(&session.number, __ATOMIC_RELAXED)) return id;
    if (!lock_take(&session.lock)) return 0;
    id = number(site);
    lock_give(&session.lock);
    return id;
}

/* ---- names known only at run time ---- */

struct dynamic_site {
    tare_site site;
    struct dynamic_site *next;
    uint64_t hash;
};

static pthread_mutex_t dynamic_lock = PTHREAD_MUTEX_INITIALIZER;
static struct dynamic_site **buckets;
static size_t n_buckets, n_dynamic;

static uint64_t hash_text(uint64_t h, const char *s)
{
    for (; *s; s++) h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
    return (h ^ 0xff) * UINT64_C(0x100000001b3);
}

static bool same_site(const struct dynamic_site *d, uint64_t hash, const tare_site *want)
{
    return d->hash == hash && d->site.kind == want->kind && d->site.line == want->line &&
           strcmp(d->site.name, want->name) == 0 && strcmp(d->site.file, want->file) == 0;
}

static bool rehash(void)
{
    size_t n = n_buckets ? n_buckets * 2 : 256;
    struct dynamic_site **fresh = mem_new(n, sizeof(struct dynamic_site *));
    if (!fresh) return n_buckets != 0;
    for (size_t i = 0; i < n_buckets; i++)
        for (struct dynamic_site *d = buckets[i], *next; d; d = next) {
            next = d->next;
            d->next = fresh[d->hash % n];
            fresh[d->hash % n] = d;
        }
    mem_free(buckets);
    buckets = fresh;
    n_buckets = n;
    return true;
}

/* Site of a name made at run time: found by its texts, or copied, for good. */
static tare_site *intern(const tare_site *want)
{
    uint64_t hash = hash_text(hash_text(want->line * 31u + want->kind, want->name), want->file);
    if (n_dynamic >= n_buckets && !rehash()) return NULL;
    for (struct dynamic_site *d = buckets[hash % n_buckets]; d; d = d->next)
        if (same_site(d, hash, want)) return &d->site;
    if (n_dynamic == DYNAMIC_MAX) return NULL;
    size_t name = strlen(want->name) + 1, file = strlen(want->file) + 1;
    struct dynamic_site *d = mem_new(1, sizeof *d + name + file);
    if (!d) return NULL;
    char *text = (char *)(d + 1);
    memcpy(text, want->name, name);
    memcpy(text + name, want->file, file);
    d->site = (tare_site){text, text + name, want->line, want->kind, 0};
    d->hash = hash;
    d->next = buckets[hash % n_buckets];
    buckets[hash % n_buckets] = d;
    n_dynamic++;
    return &d->site;
}

/* A child forked while another thread is in here must find the table whole and the lock free. */
static void dynamic_take(void)
{
    pthread_mutex_lock(&dynamic_lock);
}

static void dynamic_give(void)
{
    pthread_mutex_unlock(&dynamic_lock);
}

static void watch_forks(void)
{
    pthread_atfork(dynamic_take, dynamic_give, dynamic_give);
}

tare_site *tare_site_new(enum tare_site_kind kind, const char *name, const char *file, uint32_t line)
{
    if (!name) return NULL;
    tare_site want = {name, file ? file : "", line, (uint32_t)kind, 0};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    dynamic_take();
    tare_site *site = intern(&want);
    dynamic_give();
    return site;
}

/* SPDX-License-Identifier: MIT
 * map.c - see map.h. Linear probing at most three quarters full. A failed insertion changes nothing. */
#include "core/map.h"

#include <string.h>

#include "core/mem.h"
#include "core/rng.h"

enum { FIRST_SLOTS = 16 };

static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 wide = (unsigned __int128)a * b;
    return (uint64_t)wide ^ (uint64_t)(wide >> 64);
}

static uint64_t hash_u64(uint64_t seed, uint64_t key)
{
    return mix(mix(key ^ seed, UINT64_C(0x9FB21C651E98DF25)) ^ seed, UINT64_C(0xD6E8FEB86659FD93));
}

uint64_t map_hash(uint64_t seed, const char *p, size_t n)
{
    uint64_t h = seed ^ n, word;
    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        h = mix(h ^ word, UINT64_C(0x9FB21C651E98DF25)) + seed;
    }
    word = 0;
    if (n) memcpy(&word, p, n);
    return hash_u64(seed, h ^ word);
}

/* Where the kernel put this map's memory, and a count: not secret, but not known to who wrote the input. */
static uint64_t new_seed(const void *memory)
{
    uint64_t state = (uint64_t)(uintptr_t)memory ^ (uint64_t)(uintptr_t)&state << 17;
    return rng_splitmix(&state) | 1;
}

static size_t grown_slots(size_t n_slots)
{
    return n_slots ? n_slots * 2 : FIRST_SLOTS;
}

static bool has_room(size_t n, size_t n_slots)
{
    return n < n_slots / 4 * 3;
}

/* ---- strings ---- */

void map_str_release(struct map_str *m)
{
    for (size_t i = 0; i < m->n && !m->memory; i++) mem_free((void *)(uintptr_t)m->entries[i].key);
    mem_free(m->entries);
    mem_free(m->slots);
    *m = (struct map_str)MAP_STR_INIT;
}

static struct map_str_entry *find_entry(const struct map_str *m, const char *key, size_t len)
{
    if (!m->n_slots) return NULL;
    uint64_t hash = map_hash(m->seed, key, len);
    size_t mask = m->n_slots - 1;
    for (size_t i = hash & mask; m->slots[i]; i = (i + 1) & mask) {
        struct map_str_entry *e = &m->entries[m->slots[i] - 1];
        if (e->hash == hash && e->len == len && (len == 0 || memcmp(e->key, key, len) == 0)) return e;
    }
    return NULL;
}

uint64_t *map_str_find(const struct map_str *m, const char *key, size_t len)
{
    struct map_str_entry *e = find_entry(m, key, len);
    return e ? &e->value : NULL;
}

const char *map_str_find_key(const struct map_str *m, const char *key, size_t len)
{
    struct map_str_entry *e = find_entry(m, key, len);
    return e ? e->key : NULL;
}

static void str_place(const struct map_str *m, uint32_t *slots, size_t n_slots, size_t entry)
{
    size_t mask = n_slots - 1, i = m->entries[entry].hash & mask;
    while (slots[i]) i = (i + 1) & mask;
    slots[i] = (uint32_t)entry + 1;
}

/* Entries stand in an array in the order of insertion, and only their numbers are hashed: both must have
 * room. The new index is filled before the old one goes, so that a failure leaves the map as it was (with
 * a larger array at most). */
static bool str_make_room(struct map_str *m)
{
    if (m->n >= UINT32_MAX - 1) return false;
    if (m->n == m->cap) {
        size_t cap = m->cap ? m->cap * 2 : FIRST_SLOTS;
        struct map_str_entry *entries = mem_resize(m->entries, cap, sizeof *entries);
        if (!entries) return false;
        m->entries = entries;
        m->cap = cap;
    }
    if (has_room(m->n, m->n_slots)) return true;
    size_t n_slots = grown_slots(m->n_slots);
    uint32_t *slots = mem_new(n_slots, sizeof *slots);
    if (!slots) return false;
    if (!m->seed) m->seed = new_seed(slots);
    for (size_t i = 0; i < m->n; i++) str_place(m, slots, n_slots, i);
    mem_free(m->slots);
    m->slots = slots;
    m->n_slots = n_slots;
    return true;
}

/* The entry of a key, inserted where absent; NULL when out of memory. */
static struct map_str_entry *entry_for(struct map_str *m, const char *key, size_t len)
{
    struct map_str_entry *found = find_entry(m, key, len);
    if (found) return found;
    if (!str_make_room(m)) return NULL;
    const char *from = len ? key : "";
    const char *copy = m->memory ? arena_str_n(m->memory, from, len) : mem_strndup(from, len);
    if (!copy) return NULL;
    struct map_str_entry *e = &m->entries[m->n];
    *e = (struct map_str_entry){copy, len, map_hash(m->seed, key, len), 0};
    str_place(m, m->slots, m->n_slots, m->n++);
    return e;
}

tare_status map_str_ref(struct map_str *m, const char *key, size_t len, uint64_t **value, tare_error *err)
{
    struct map_str_entry *e = entry_for(m, key, len);
    if (!e) return error_nomem(err, "a map of %zu names", m->n + 1);
    *value = &e->value;
    return TARE_OK;
}

const char *map_str_intern(struct map_str *m, const char *key, size_t len)
{
    struct map_str_entry *e = entry_for(m, key, len);
    return e ? e->key : NULL;
}

tare_status map_str_put(struct map_str *m, const char *key, size_t len, uint64_t value, tare_error *err)
{
    uint64_t *place = NULL;
    tare_status s = map_str_ref(m, key, len, &place, err);
    if (s == TARE_OK) *place = value;
    return s;
}

/* ---- numbers ---- */

void map_u64_release(struct map_u64 *m)
{
    mem_free(m->slots);
    *m = (struct map_u64)MAP_U64_INIT;
}

/* The slot of a key other than 0, or the free slot where it would go. The table has room. */
static struct map_u64_slot *u64_slot(const struct map_u64 *m, uint64_t key)
{
    size_t mask = m->n_slots - 1, i = hash_u64(m->seed, key) & mask;
    while (m->slots[i].key && m->slots[i].key != key) i = (i + 1) & mask;
    return &m->slots[i];
}

uint64_t *map_u64_find(const struct map_u64 *m, uint64_t key)
{
    if (key == 0) return m->has_zero ? (uint64_t *)(uintptr_t)&m->zero.value : NULL;
    if (!m->n_slots) return NULL;
    struct map_u64_slot *slot = u64_slot(m, key);
    return slot->key ? &slot->value : NULL;
}

static bool u64_make_room(struct map_u64 *m)
{
    if (has_room(m->n, m->n_slots)) return true;
    struct map_u64 next = *m;
    next.n_slots = grown_slots(m->n_slots);
    next.slots = mem_new(next.n_slots, sizeof *next.slots);
    if (!next.slots) return false;
    if (!next.seed) next.seed = new_seed(next.slots);
    for (size_t i = 0; i < m->n_slots; i++) {
        if (m->slots[i].key) *u64_slot(&next, m->slots[i].key) = m->slots[i];
    }
    mem_free(m->slots);
    *m = next;
    return true;
}

/* A slot with key 0 is a free one, so that the key 0 has a place of its own outside the table. */
tare_status map_u64_ref(struct map_u64 *m, uint64_t key, uint64_t **value, tare_error *err)
{
    uint64_t *found = map_u64_find(m, key);
    if (!found && key == 0) {
        m->zero.value = 0;
        m->has_zero = true;
        m->n++;
        found = &m->zero.value;
    } else if (!found) {
        if (!u64_make_room(m))
            return error_set(err, TARE_NOMEM, "out of memory for a map of %zu keys", m->n + 1);
        struct map_u64_slot *slot = u64_slot(m, key);
        *slot = (struct map_u64_slot){key, 0};
        m->n++;
        found = &slot->value;
    }
    *value = found;
    return TARE_OK;
}

tare_status map_u64_put(struct map_u64 *m, uint64_t key, uint64_t value, tare_error *err)
{
    uint64_t *place;
    tare_status s = map_u64_ref(m, key, &place, err);
    if (s == TARE_OK) *place = value;
    return s;
}

/* Close the gap at `hole`: entries that probed past it move back, so that no tombstones are needed. */
static void u64_close_gap(struct map_u64 *m, size_t hole)
{
    size_t mask = m->n_slots - 1;
    for (size_t i = (hole + 1) & mask; m->slots[i].key; i = (i + 1) & mask) {
        size_t home = hash_u64(m->seed, m->slots[i].key) & mask;
        if (((i - home) & mask) < ((i - hole) & mask)) continue; /* its home lies after the hole */
        m->slots[hole] = m->slots[i];
        hole = i;
    }
    m->slots[hole].key = 0;
}

bool map_u64_remove(struct map_u64 *m, uint64_t key, uint64_t *value)
{
    uint64_t *found = map_u64_find(m, key);
    if (!found) return false;
    if (value) *value = *found;
    if (key == 0)
        m->has_zero = false;
    else
        u64_close_gap(m, (size_t)(u64_slot(m, key) - m->slots));
    m->n--;
    return true;
}

const struct map_u64_slot *map_u64_next(const struct map_u64 *m, size_t *at)
{
    while (*at < m->n_slots) {
        const struct map_u64_slot *slot = &m->slots[(*at)++];
        if (slot->key) return slot;
    }
    if (*at == m->n_slots && m->has_zero) {
        (*at)++;
        return &m->zero;
    }
    return NULL;
}

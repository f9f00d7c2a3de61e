/* SPDX-License-Identifier: MIT
 * map.h - two hash maps with open addressing: strings to numbers, and numbers to numbers. Hashes are keyed
 * per map, so that hostile input cannot choose collisions. Neither is thread-safe. Inserting moves values:
 * a pointer to a value holds until the next insertion or removal. */
#ifndef CORE_MAP_H
#define CORE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/error.h"

/* ---- strings: keys are COPIED into the map; any bytes, NUL included; iterated in order of insertion ---- */

struct map_str_entry {
    const char *key; /* owned by the map; a NUL follows key[len - 1] */
    size_t len;
    uint64_t hash, value;
};

struct map_str {
    struct map_str_entry *entries; /* entries[0 .. n-1], oldest first: read them directly to iterate */
    size_t n, cap;
    uint32_t *slots; /* entry number + 1, 0: free */
    size_t n_slots;  /* power of two, or 0 */
    uint64_t seed;
    struct arena *memory; /* NULL: each key is a block of its own; else keys stay there when the map goes */
};
#define MAP_STR_INIT                 \
    {                                \
        NULL, 0, 0, NULL, 0, 0, NULL \
    }

void map_str_release(struct map_str *m);

/* The value of a key for reading or changing, or NULL. */
uint64_t *map_str_find(const struct map_str *m, const char *key, size_t len);

/* The value of a key, inserted as 0 where absent (then m->n has grown by one). */
tare_status map_str_ref(struct map_str *m, const char *key, size_t len, uint64_t **value, tare_error *err);

/* Insert or replace. */
tare_status map_str_put(struct map_str *m, const char *key, size_t len, uint64_t value, tare_error *err);

/* The map's own copy of a key: the same pointer for the same bytes. find: NULL where absent; intern: put in
 * where absent, NULL when out of memory. */
const char *map_str_find_key(const struct map_str *m, const char *key, size_t len);
const char *map_str_intern(struct map_str *m, const char *key, size_t len);

/* A keyed hash, for tables of other kinds. */
uint64_t map_hash(uint64_t seed, const char *bytes, size_t n);

/* ---- numbers: every uint64_t is a good key; the order of iteration is arbitrary, even between runs ---- */

struct map_u64_slot {
    uint64_t key, value; /* key 0: free (the key 0 itself lives beside the table) */
};

struct map_u64 {
    struct map_u64_slot *slots;
    size_t n, n_slots; /* n counts all keys, 0 included; n_slots is a power of two, or 0 */
    uint64_t seed;
    struct map_u64_slot zero;
    bool has_zero;
};
#define MAP_U64_INIT                 \
    {                                \
        NULL, 0, 0, 0, {0, 0}, false \
    }

void map_u64_release(struct map_u64 *m);
uint64_t *map_u64_find(const struct map_u64 *m, uint64_t key);
tare_status map_u64_ref(struct map_u64 *m, uint64_t key, uint64_t **value, tare_error *err);
tare_status map_u64_put(struct map_u64 *m, uint64_t key, uint64_t value, tare_error *err);
/* Take a key out; false when it is not there. `value` may be NULL. */
bool map_u64_remove(struct map_u64 *m, uint64_t key, uint64_t *value);

/* Walk all entries: size_t at = 0; while ((slot = map_u64_next(m, &at))) ...; change no keys meanwhile. */
const struct map_u64_slot *map_u64_next(const struct map_u64 *m, size_t *at);

#endif

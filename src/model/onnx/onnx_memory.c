/* SPDX-License-Identifier: MIT
 * onnx_memory.c - see onnx_memory.h. Chunks grow with the model, so that a small one stays small and a large
 * one takes few. Hashes are keyed, so that a hostile file cannot choose collisions. */
#include "model/onnx/onnx_memory.h"

#include <string.h>

#include "core/mem.h"
#include "core/rng.h"

enum { FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20, ALIGN = 8, FIRST_STRINGS = 64 };

struct onnx_chunk {
    struct onnx_chunk *next;
    size_t used, size;
    _Alignas(ALIGN) unsigned char bytes[];
};

struct onnx_index {
    size_t mask;
    uint64_t seed;
    uint32_t slots[]; /* number of the initializer + 1, 0: free */
};

struct onnx_memory *onnx_memory_new(void)
{
    struct onnx_memory *m = mem_new(1, sizeof *m);
    if (!m) return NULL;
    uint64_t state = (uint64_t)(uintptr_t)m ^ (uint64_t)(uintptr_t)&state << 17;
    m->seed = rng_splitmix(&state) | 1;
    return m;
}

void onnx_memory_free(struct onnx_memory *m)
{
    if (!m) return;
    while (m->chunks) {
        struct onnx_chunk *next = m->chunks->next;
        mem_free(m->chunks);
        m->chunks = next;
    }
    mem_free(m->strings);
    external_release(&m->external);
    file_unmap(&m->view);
    mem_free(m);
}

/* A chunk with room for `bytes`. A large block gets one of its own and does not end the chunk in use. */
static struct onnx_chunk *add_chunk(struct onnx_memory *m, size_t bytes)
{
    size_t size = m->chunks ? m->chunks->size * 2 : FIRST_CHUNK;
    if (size > LARGEST_CHUNK) size = LARGEST_CHUNK;
    if (size < bytes) size = bytes;
    struct onnx_chunk *c = mem_new(1, sizeof *c + size);
    if (!c) return NULL;
    c->size = size;
    c->next = m->chunks;
    m->chunks = c;
    return c;
}

static struct onnx_chunk *own_chunk(struct onnx_memory *m, size_t bytes)
{
    struct onnx_chunk *c = mem_new(1, sizeof *c + bytes);
    if (!c) return NULL;
    c->size = bytes;
    struct onnx_chunk **at = m->chunks ? &m->chunks->next : &m->chunks;
    c->next = *at;
    *at = c;
    return c;
}

void *onnx_memory_get(struct onnx_memory *m, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 4) return NULL;
    bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    struct onnx_chunk *c = m->chunks;
    if (!c || c == m->text || bytes > c->size - c->used)
        c = bytes > LARGEST_CHUNK / 4 ? own_chunk(m, bytes) : add_chunk(m, bytes);
    if (!c) return NULL;
    void *p = c->bytes + c->used;
    c->used += bytes;
    return p;
}

static uint64_t hash_of(uint64_t seed, const char *s, size_t n)
{
    uint64_t h = seed ^ n;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, s + i, n - i < 8 ? n - i : 8);
        unsigned __int128 wide = (unsigned __int128)(h ^ word) * UINT64_C(0x9FB21C651E98DF25);
        h = ((uint64_t)wide ^ (uint64_t)(wide >> 64)) + seed;
    }
    return rng_splitmix(&h);
}

/* ---- strings ---- */

/* The slot of a string, or the free one where it would go. There are slots. */
static struct onnx_string *slot_of(const struct onnx_memory *m, const char *s, size_t n, uint32_t hash)
{
    size_t mask = m->n_slots - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct onnx_string *at = &m->strings[i];
        if (!at->text) return at;
        if (at->hash == hash && at->len == n && memcmp(at->text, s, n) == 0) return at;
    }
}

static bool more_slots(struct onnx_memory *m)
{
    size_t n_slots = m->n_slots ? m->n_slots * 2 : FIRST_STRINGS, mask = n_slots - 1;
    struct onnx_string *strings = mem_new(n_slots, sizeof *strings);
    if (!strings) return false;
    for (size_t i = 0; i < m->n_slots; i++) {
        if (!m->strings[i].text) continue;
        size_t to = m->strings[i].hash & mask;
        while (strings[to].text) to = (to + 1) & mask;
        strings[to] = m->strings[i];
    }
    mem_free(m->strings);
    m->strings = strings;
    m->n_slots = n_slots;
    return true;
}

/* Strings are packed into chunks of their own, without alignment. */
static char *text_room(struct onnx_memory *m, size_t bytes)
{
    struct onnx_chunk *c = m->text;
    if (!c || bytes > c->size - c->used) {
        size_t size = c ? c->size * 2 : FIRST_CHUNK;
        if (size > LARGEST_CHUNK) size = LARGEST_CHUNK;
        c = own_chunk(m, size < bytes ? bytes : size);
        if (!c) return NULL;
        if (c->size > bytes) m->text = c;
    }
    char *p = (char *)c->bytes + c->used;
    c->used += bytes;
    return p;
}

const char *onnx_memory_find(const struct onnx_memory *m, const char *s, size_t n)
{
    if (!m->n_slots || n >= UINT32_MAX) return NULL;
    return slot_of(m, s, n, (uint32_t)hash_of(m->seed, s, n))->text;
}

const char *onnx_memory_str(struct onnx_memory *m, const char *s, size_t n)
{
    if (n == 0) return "";
    if (n >= UINT32_MAX) return NULL;
    if (m->n_strings >= m->n_slots / 4 * 3 && !more_slots(m)) return NULL;
    uint32_t hash = (uint32_t)hash_of(m->seed, s, n);
    struct onnx_string *at = slot_of(m, s, n, hash);
    if (at->text) return at->text;
    char *copy = text_room(m, n + 1);
    if (!copy) return NULL;
    memcpy(copy, s, n);
    copy[n] = 0;
    *at = (struct onnx_string){copy, hash, (uint32_t)n};
    m->n_strings++;
    return copy;
}

/* ---- initializers by name ---- */

tare_status onnx_index_build(struct onnx_memory *m, struct onnx_graph *g, size_t *twice)
{
    size_t n_slots = 4;
    if (!g->initializers.n) return TARE_OK;
    if (g->initializers.n >= UINT32_MAX / 2) return TARE_NOMEM;
    while (n_slots < g->initializers.n * 2) n_slots *= 2;
    struct onnx_index *x = onnx_memory_get(m, 1, sizeof *x + n_slots * sizeof x->slots[0]);
    if (!x) return TARE_NOMEM;
    x->mask = n_slots - 1;
    x->seed = m->seed;
    for (size_t i = 0; i < g->initializers.n; i++) {
        const char *name = g->initializers.items[i].name;
        size_t at = hash_of(x->seed, name, strlen(name)) & x->mask;
        for (; x->slots[at]; at = (at + 1) & x->mask) {
            if (g->initializers.items[x->slots[at] - 1].name != name) continue;
            *twice = i;
            return TARE_INVALID;
        }
        x->slots[at] = (uint32_t)i + 1;
    }
    g->index = x;
    return TARE_OK;
}

const struct onnx_tensor *onnx_initializer(const struct onnx_graph *g, const char *name)
{
    const struct onnx_index *x = g->index;
    if (!x) return NULL;
    for (size_t at = hash_of(x->seed, name, strlen(name)) & x->mask; x->slots[at]; at = (at + 1) & x->mask) {
        const struct onnx_tensor *t = &g->initializers.items[x->slots[at] - 1];
        if (strcmp(t->name, name) == 0) return t;
    }
    return NULL;
}

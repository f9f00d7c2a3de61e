/* SPDX-License-Identifier: MIT
 * value.c - see value.h. */
#include "run/value.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct run_entry *find(const struct run_map *m, const char *key, size_t len)
{
    for (size_t i = 0; key && i < m->n; i++) {
        const char *k = m->at[i].key;
        if (k && strncmp(k, key, len) == 0 && k[len] == 0) return &m->at[i];
    }
    return NULL;
}

struct run_value *run_map_set(struct arena *a, struct run_map *m, const char *key, struct run_value v)
{
    struct run_entry *e = key ? find(m, key, strlen(key)) : NULL;
    if (v.kind == RUN_TEXT && !(v.s = arena_str(a, v.s))) return NULL;
    if (!e) {
        struct run_entry *at = arena_grow(a, m->at, m->n, sizeof *at);
        const char *copy = arena_str(a, key);
        if (!at || (key && !copy)) return NULL;
        m->at = at;
        e = &at[m->n++];
        e->key = copy;
    }
    e->value = v;
    return &e->value;
}

void run_map_bool(struct arena *a, struct run_map *m, const char *key, bool v)
{
    run_map_set(a, m, key, (struct run_value){.kind = RUN_BOOL, .yes = v});
}

void run_map_int(struct arena *a, struct run_map *m, const char *key, int64_t v)
{
    run_map_set(a, m, key, (struct run_value){.kind = RUN_INT, .i = v});
}

void run_map_real(struct arena *a, struct run_map *m, const char *key, double v)
{
    run_map_set(a, m, key, (struct run_value){.kind = RUN_REAL, .d = v});
}

void run_map_text(struct arena *a, struct run_map *m, const char *key, const char *v)
{
    run_map_set(a, m, key, (struct run_value){.kind = v ? RUN_TEXT : RUN_NULL, .s = v});
}

void run_map_textf(struct arena *a, struct run_map *m, const char *key, const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    run_map_text(a, m, key, text);
}

void run_map_drop(struct run_map *m, const char *key)
{
    struct run_entry *e = find(m, key, strlen(key));
    if (!e) return;
    memmove(e, e + 1, (size_t)(m->at + m->n - (e + 1)) * sizeof *e);
    m->n--;
}

const struct run_value *run_map_get(const struct run_map *m, const char *key)
{
    const struct run_entry *e = find(m, key, strlen(key));
    return e ? &e->value : NULL;
}

const char *run_reason(const struct run_map *unknown, const char *path)
{
    size_t len = strlen(path);
    while (len) {
        const struct run_entry *e = find(unknown, path, len);
        if (e && e->value.kind == RUN_TEXT) return e->value.s;
        while (len && path[len - 1] != '.' && path[len - 1] != '[') len--;
        if (len) len--;
    }
    return NULL;
}

/* ---- lists ---- */

void *run_list_item(struct arena *a, void ***at, size_t *n, size_t size)
{
    void *item = arena_new(a, 1, size);
    void **grown = item ? arena_grow(a, *at, *n, sizeof *grown) : NULL;
    if (!grown) return NULL;
    grown[(*n)++] = item;
    *at = grown;
    return item;
}

void *run_list_new(struct arena *a, size_t n, size_t size)
{
    size_t room = n ? n : 1; /* none is not NULL, which says that memory ran out */
    char *items = arena_new(a, room, size);
    void **at = items ? arena_new(a, room, sizeof *at) : NULL;
    for (size_t i = 0; at && i < n; i++) at[i] = items + i * size;
    return at;
}

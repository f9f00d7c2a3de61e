/* SPDX-License-Identifier: MIT
 * lines.c - see lines.h. */
#include "load/lines.h"

#include <string.h>

#include "core/rng.h"

static tare_status cut(struct lines *l, tare_error *err)
{
    const char *at = (const char *)l->file.data, *end = at + l->file.size;
    tare_status s = TARE_OK;
    for (size_t number = 1; s == TARE_OK && at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at), kept = n;
        while (kept && (at[kept - 1] == '\r' || at[kept - 1] == ' ')) kept--;
        if (kept) s = vec_push(&l->all, ((struct line){at, kept, number}), err);
        at += n + 1;
    }
    return s;
}

void lines_shuffle(struct lines *l, uint64_t seed)
{
    struct rng r;
    rng_seed(&r, seed);
    for (size_t i = l->all.n; i > 1; i--) {
        size_t k = (size_t)rng_below(&r, i);
        struct line held = l->all.items[i - 1];
        l->all.items[i - 1] = l->all.items[k];
        l->all.items[k] = held;
    }
}

tare_status lines_open(struct lines *l, const char *path, tare_error *err)
{
    *l = (struct lines){.name = path};
    tare_status s = file_map(path, &l->file, err);
    if (s == TARE_OK) s = cut(l, err);
    if (s == TARE_OK && !l->all.n) s = error_set(err, TARE_FORMAT, "%s: only empty lines", path);
    if (s < 0) lines_close(l);
    return s;
}

void lines_close(struct lines *l)
{
    vec_release(&l->all);
    file_unmap(&l->file);
    *l = (struct lines){.name = NULL};
}

const struct line *lines_at(const struct lines *l, uint64_t number)
{
    return &l->all.items[number % l->all.n];
}

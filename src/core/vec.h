/* SPDX-License-Identifier: MIT
 * vec.h - a growable array of any type, over mem.h.
 *
 *     VEC(struct site) sites = VEC_INIT;
 *     if ((s = vec_push(&sites, site, err)) < 0) goto out;
 *     for (size_t i = 0; i < sites.n; i++) use(&sites.items[i]);
 * out:
 *     vec_release(&sites);
 *
 * The macros read their vector argument several times: pass a plain address, never f() or p++. Growing moves
 * the items, so keep indices, not pointers. A failed push or reserve leaves the vector as it was. */
#ifndef CORE_VEC_H
#define CORE_VEC_H

#include <stdint.h>

#include "core/error.h"
#include "core/mem.h"

#define VEC(type)      \
    struct {           \
        type *items;   \
        size_t n, cap; \
    }
#define VEC_INIT   \
    {              \
        NULL, 0, 0 \
    }

/* Room for `want` items in all, growing by doubling. NULL when that fails; *cap changes on success only. */
static inline void *vec_grow_(void *items, size_t *cap, size_t want, size_t size)
{
    size_t next = *cap > SIZE_MAX / 2 ? want : *cap * 2;
    if (next < 8) next = 8;
    if (next < want) next = want;
    void *grown = mem_resize(items, next, size);
    if (grown) *cap = next;
    return grown;
}

/* Make room for `want` items in all: TARE_OK, or TARE_NOMEM with a text. */
#define vec_reserve(v, want, err)                                                                 \
    __extension__({                                                                               \
        size_t vec_want_ = (want), vec_cap_ = (v)->cap;                                           \
        tare_status vec_room_ = TARE_OK;                                                          \
        if (vec_want_ > vec_cap_) {                                                               \
            void *vec_items_ = vec_grow_((v)->items, &vec_cap_, vec_want_, sizeof *(v)->items);   \
            if (vec_items_) {                                                                     \
                (v)->items = vec_items_;                                                          \
                (v)->cap = vec_cap_;                                                              \
            } else {                                                                              \
                vec_room_ = error_nomem(err, "%zu items", vec_want_); \
            }                                                                                     \
        }                                                                                         \
        vec_room_;                                                                                \
    })

/* Append a copy of `item`: TARE_OK or TARE_NOMEM. `item` is read after the growth, and only on success. */
#define vec_push(v, item, err)                                     \
    __extension__({                                                \
        tare_status vec_pushed_ = vec_reserve(v, (v)->n + 1, err); \
        if (vec_pushed_ == TARE_OK) {                              \
            (v)->items[(v)->n] = (item);                           \
            (v)->n++;                                              \
        }                                                          \
        vec_pushed_;                                               \
    })

#define vec_last(v) (&(v)->items[(v)->n - 1]) /* of a vector that is not empty */
#define vec_pop(v) ((v)->items[--(v)->n])     /* of a vector that is not empty */
#define vec_clear(v) ((void)((v)->n = 0))     /* keeps the memory */
#define vec_release(v)         \
    do {                       \
        mem_free((v)->items);  \
        (v)->items = NULL;     \
        (v)->n = (v)->cap = 0; \
    } while (0)

#endif

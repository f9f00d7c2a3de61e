/* SPDX-License-Identifier: MIT
 * json_tree.h - a JSON text as a tree, for documents that fit memory: exactly what jansson takes with
 * JSON_REJECT_DUPLICATES, at a fifth of its cost, because no part of it is allocated by itself (fuzz/fuzz_json_tree.c
 * holds the two together). It says yes or no and never why: who reads a refused text again can tell the place. */
#ifndef CORE_JSON_TREE_H
#define CORE_JSON_TREE_H

#include <stdint.h>

#include "core/arena.h"
#include "core/error.h"

enum tree_kind {
    TREE_NULL,
    TREE_FALSE,
    TREE_TRUE,
    TREE_INTEGER,
    TREE_REAL,
    TREE_STRING,
    TREE_ARRAY,
    TREE_OBJECT
};

#define JSON_TREE_DEPTH 2048 /* values within values */

struct json_node {
    const struct json_node *next; /* of the same array or object, in the order of the text */
    const char *key;              /* of an object's member: NUL-terminated UTF-8 without NUL, as all texts */
    uint32_t hash;                /* of the key */
    enum tree_kind kind;
    union {
        int64_t i;
        double d;
        const char *s;
        struct {
            const struct json_node *first;
            size_t n;
        } items;
    };
};

/* The arenas must outlive what is read: nodes in one, texts in the other (one and the same will do). `len` bytes are
 * copied once. The root is an object or an array. TARE_FORMAT: this is not JSON, or an object has a key twice;
 * TARE_NOMEM. */
struct json_room {
    struct arena *nodes, *texts;
};
tare_status json_tree_read(struct json_room room, const void *bytes, size_t len,
                           const struct json_node **root);

/* The member of an object, or NULL. `*hint` is where to look first: NULL, or what this function left there. Asking in
 * the order of the text finds each at once. */
const struct json_node *json_tree_get(const struct json_node *object, const char *key,
                                      const struct json_node **hint);

#endif

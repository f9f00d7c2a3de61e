/* SPDX-License-Identifier: MIT
 * fuzz_json_tree.c - json_tree_read() beside jansson: the same texts are taken and refused, and what is taken has the
 * same values in the same order. But for NUL: jansson does not see one that stands right behind a number. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/json_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

static void same(const struct json_node *v, json_t *as);

static void same_items(const struct json_node *v, json_t *as)
{
    const struct json_node *hint = NULL, *m = v->items.first;
    const char *key;
    json_t *item;
    size_t i = 0;
    if (v->kind == TREE_ARRAY) {
        must(v->items.n == json_array_size(as));
        for (; m; m = m->next) same(m, json_array_get(as, i++));
    } else {
        must(v->items.n == json_object_size(as));
        json_object_foreach(as, key, item)
        {
            must(m && strcmp(m->key, key) == 0);
            must(json_tree_get(v, key, &hint) == m);
            same(m, item);
            m = m->next;
        }
    }
    must(!m);
}

static void same(const struct json_node *v, json_t *as)
{
    static const json_type types[] = {
        [TREE_NULL] = JSON_NULL,       [TREE_FALSE] = JSON_FALSE, [TREE_TRUE] = JSON_TRUE,
        [TREE_INTEGER] = JSON_INTEGER, [TREE_REAL] = JSON_REAL,   [TREE_STRING] = JSON_STRING,
        [TREE_ARRAY] = JSON_ARRAY,     [TREE_OBJECT] = JSON_OBJECT};
    double d = json_real_value(as);
    must(types[v->kind] == json_typeof(as));
    if (v->kind == TREE_INTEGER) must(v->i == json_integer_value(as));
    if (v->kind == TREE_REAL) must(memcmp(&v->d, &d, sizeof d) == 0);
    if (v->kind == TREE_STRING) must(strcmp(v->s, json_string_value(as)) == 0);
    if (v->kind == TREE_ARRAY || v->kind == TREE_OBJECT) same_items(v, as);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT;
    const struct json_node *root = NULL;
    json_t *as = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    tare_status s = json_tree_read((struct json_room){&arena, &arena}, data, size, &root);
    must(s != TARE_OK || as);
    must(s == TARE_OK || !as || memchr(data, 0, size));
    if (s == TARE_OK) same(root, as);
    json_decref(as);
    arena_release(&arena);
    return 0;
}

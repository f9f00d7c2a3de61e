/* SPDX-License-Identifier: MIT
 * py_code.c - functions of another process by their address: read once, then known. An address can come to be another
 * function's; so each is looked at again once in a generation. */
#include <string.h>

#include "core/buf.h"
#include "core/mem.h"
#include "sample/py_process.h"

enum { CODE_BYTES = 256, NAME_CHARS = 300, TABLE_MOST = 32 << 10, CODES_MOST = 1 << 18 };

static const char *text_at(struct py_process *p, uint64_t object)
{
    struct buf b = BUF_INIT;
    py_str(p, object, NAME_CHARS, &b);
    const char *s = arena_str(&p->arena, b.len ? b.data : "?");
    buf_release(&b);
    return s;
}

static uint64_t bytes_of(const struct py_process *p, uint64_t object, char *out, size_t most)
{
    uint64_t size = 0;
    if (!peek_u64(&p->peek, object + PY_SIZE, &size) || size > most) return 0;
    return peek_bytes(&p->peek, object + PY_BYTES_DATA, out, size) ? size : 0;
}

/* Up to where instructions may be. From 3.11 on they follow the object, whose size says how many. */
static void find_bytecode(const struct py_process *p, const uint8_t *copy, struct py_code *c)
{
    if (p->at.code_bytecode < 0) return;
    uint64_t units = peek_field(copy, PY_SIZE);
    c->bytecode = c->at + (uint64_t)p->at.code_bytecode;
    c->bytecode_bytes = units < 1 << 24 ? units * 2 : 0;
}

static uint64_t key_of(const struct py_layout *l, const uint8_t *copy)
{
    uint32_t line;
    memcpy(&line, copy + l->code_first_line, sizeof line);
    return peek_field(copy, (size_t)l->code_table) ^ peek_field(copy, (size_t)l->code_name) * 31 ^
           (uint64_t)line << 48;
}

static void fill(struct py_process *p, struct py_code *c, const uint8_t *copy)
{
    char table[TABLE_MOST];
    uint32_t flags;
    memcpy(&flags, copy + (p->at.frame_objects ? PY_FLAGS_OF_FRAME_OBJECTS : PY_FLAGS), sizeof flags);
    c->generator = flags & PY_IS_GENERATOR;
    c->key = key_of(&p->at, copy);
    c->number = 0;
    c->name = text_at(p, peek_field(copy, (size_t)p->at.code_name));
    c->file = text_at(p, peek_field(copy, (size_t)p->at.code_file));
    memcpy(&c->first_line, copy + p->at.code_first_line, sizeof c->first_line);
    c->table_bytes = bytes_of(p, peek_field(copy, (size_t)p->at.code_table), table, sizeof table);
    c->table = arena_str_n(&p->arena, table, c->table_bytes);
    find_bytecode(p, copy, c);
}

static bool is_code(const struct py_process *p, uint64_t address, uint8_t *copy)
{
    size_t want = (size_t)(p->at.code_bytecode > 0 ? p->at.code_bytecode : p->at.code_table + 8);
    return address % 8 == 0 && want <= CODE_BYTES && peek_bytes(&p->peek, address, copy, want) &&
           peek_field(copy, PY_TYPE) == p->code_type;
}

struct py_code *py_code_at(struct py_process *p, uint64_t address)
{
    uint8_t copy[CODE_BYTES] = {0};
    uint64_t *place = map_u64_find(&p->code, address);
    struct py_code *c = place ? p->codes.items[*place - 1] : NULL;
    if (c && c->checked == p->generation) return c;
    if (!is_code(p, address, copy)) return NULL;
    if (!c) {
        if (p->codes.n >= CODES_MOST || !(c = mem_new(1, sizeof *c))) return NULL;
        if (vec_push(&p->codes, c, NULL) != TARE_OK) {
            mem_free(c);
            return NULL;
        }
        if (map_u64_put(&p->code, address, p->codes.n, NULL) != TARE_OK) return NULL;
        c->at = address;
    }
    if (c->key != key_of(&p->at, copy) || !c->name) fill(p, c, copy);
    c->checked = p->generation;
    return c->name && c->file && c->table ? c : NULL;
}

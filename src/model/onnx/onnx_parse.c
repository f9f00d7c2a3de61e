/* SPDX-License-Identifier: MIT
 * onnx_parse.c - see onnx_parse.h. */
#include "model/onnx/onnx_parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/buf.h"
#include "core/str.h"

enum { PLACE_SHOWN = 8 };

/* "graph.node[12].attribute[0]"; of a deep place the outermost and the innermost parts. */
static void name_place(const struct place *at, struct buf *to)
{
    const struct place *parts[2 * PLACE_SHOWN + 1];
    size_t depth = 0, n = 0;
    for (const struct place *p = at; p; p = p->up) depth++;
    size_t level = depth;
    for (const struct place *p = at; p; p = p->up, level--) {
        if (level <= PLACE_SHOWN || depth - level < PLACE_SHOWN) parts[n++] = p;
    }
    while (n--) {
        buf_printf(to, "%s%.60s", to->len ? "." : "", parts[n]->field);
        if (parts[n]->index != PARSE_NO_INDEX) buf_printf(to, "[%lld]", (long long)parts[n]->index);
        if (depth > 2 * PLACE_SHOWN && n == PLACE_SHOWN) buf_add_str(to, "...");
    }
}

tare_status parse_fail(const struct parse *p, const struct place *at, const char *format, ...)
{
    struct buf place = BUF_INIT;
    char text[240];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    name_place(at, &place);
    const char *lead = place.len ? ": " : ""; /* cut, so that the text itself is not */
    tare_status s = error_set(p->err, TARE_FORMAT, "%s: %.199s%s%s", p->file, place.data, lead, text);
    buf_release(&place);
    return s;
}

tare_status parse_nomem(const struct parse *p)
{
    return error_set(p->err, TARE_NOMEM, "%s: out of memory for the graph", p->file);
}

tare_status parse_enter(const struct parse *p, struct place *inner, const struct place *at, const char *field,
                        int64_t index)
{
    *inner = (struct place){at, field, index, at ? at->depth + 1 : 1};
    if (inner->depth < PARSE_MAX_DEPTH) return TARE_OK;
    return parse_fail(p, inner, "nested more than %d levels deep", PARSE_MAX_DEPTH);
}

int parse_next(const struct parse *p, struct message *m, struct wire_field *f)
{
    const char *why = NULL;
    int got;
    while ((got = wire_next(&m->wire, f, &why)) > 0) {
        const struct parse_field *known = f->number < PARSE_FIELDS ? &m->fields[f->number] : NULL;
        if (!known || !known->name) continue;
        if (known->as & 1U << f->type) return 1;
        return parse_fail(p, m->at, "%s is not of the kind it must be, at byte %zu", known->name,
                          (size_t)(f->bytes - p->start));
    }
    if (got == 0) return 0;
    return parse_fail(p, m->at, "%s, at byte %zu", why, (size_t)(m->wire.at - p->start));
}

/* How many numbers one field has that may be packed. */
static tare_status count_numbers(const struct parse *p, const struct message *m, const struct wire_field *f,
                                 size_t *n)
{
    const struct parse_field *field = &m->fields[f->number];
    size_t more = 1;
    if (f->type == WIRE_BYTES)
        more = wire_packed_count(f->bytes, f->n, field->as & AS_VARINT ? WIRE_VARINT : WIRE_FIXED32);
    if (more == (size_t)-1)
        return parse_fail(p, m->at, "%s ends inside a number, at byte %zu", field->name,
                          (size_t)(f->bytes - p->start));
    *n += more;
    return TARE_OK;
}

tare_status parse_count(const struct parse *p, struct message m, struct parse_counts *counts)
{
    struct wire_field f;
    int got;
    *counts = (struct parse_counts){{0}};
    while ((got = parse_next(p, &m, &f)) > 0) {
        if (!m.fields[f.number].numbers) {
            counts->of[f.number]++;
        } else {
            tare_status s = count_numbers(p, &m, &f, &counts->of[f.number]);
            if (s < 0) return s;
        }
    }
    return got < 0 ? (tare_status)got : TARE_OK;
}

/* As every ONNX_LIST is laid out. Its pointer is of another type each time: copied, not cast. */
struct list {
    void *items;
    size_t n;
};

/* Room was counted before. */
static tare_status add_numbers(const struct parse *p, const struct message *m, const struct wire_field *f,
                               struct list *list)
{
    const struct parse_field *field = &m->fields[f->number];
    enum wire_type type = field->as & AS_VARINT ? WIRE_VARINT : WIRE_FIXED32;
    struct wire run = {f->bytes, f->bytes + f->n};
    uint64_t value = f->value;
    const char *why = NULL;
    int got = f->type == WIRE_BYTES ? wire_packed(&run, type, &value, &why) : 1;
    while (got > 0) {
        uint32_t bits = (uint32_t)value;
        void *to = (char *)list->items + list->n++ * field->size;
        memcpy(to, type == WIRE_VARINT ? (void *)&value : &bits, field->size);
        got = f->type == WIRE_BYTES ? wire_packed(&run, type, &value, &why) : 0;
    }
    if (got == 0) return TARE_OK;
    return parse_fail(p, m->at, "%s: %s, at byte %zu", field->name, why, (size_t)(run.at - p->start));
}

/* One field by its row: a value, an item of a list (made when its first one comes), or numbers of one. */
static tare_status read_field(const struct parse *p, const struct message *m, const struct wire_field *f,
                              size_t count, void *out)
{
    const struct parse_field *field = &m->fields[f->number];
    void *to = (char *)out + field->at;
    int64_t index = PARSE_NO_INDEX;
    struct place inner;
    if (field->size) {
        struct list list;
        tare_status s = TARE_OK;
        if (!count) return TARE_OK;
        memcpy(&list, to, sizeof list);
        if (!list.items && !(list.items = arena_new(&p->memory->arena, count, field->size)))
            return parse_nomem(p);
        if (field->numbers)
            s = add_numbers(p, m, f, &list);
        else
            index = (int64_t)list.n++;
        memcpy(to, &list, sizeof list);
        if (field->numbers) return s;
        to = (char *)list.items + (size_t)index * field->size;
    }
    if (!field->read) return TARE_OK;
    if (!field->inside) return field->read(p, m->at, f, to);
    tare_status s = parse_enter(p, &inner, m->at, field->name, index);
    return s < 0 ? s : field->read(p, &inner, f, to);
}

tare_status parse_fields(const struct parse *p, struct message m, void *out, struct parse_counts *counts)
{
    struct parse_counts own;
    struct wire_field f;
    int got;
    if (!counts) counts = &own;
    tare_status s = parse_count(p, m, counts);
    if (s < 0) return s;
    while ((got = parse_next(p, &m, &f)) > 0) {
        const struct parse_field *field = &m.fields[f.number];
        if ((field->read || field->numbers) && (s = read_field(p, &m, &f, counts->of[f.number], out)) < 0)
            return s;
    }
    return got < 0 ? (tare_status)got : TARE_OK;
}

/* Eight bytes at a time: nearly all names are. */
static bool is_ascii(const uint8_t *p, size_t n)
{
    uint64_t high = 0, word;
    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        high |= word;
    }
    for (; n; n--, p++) high |= *p;
    return !(high & UINT64_C(0x8080808080808080));
}

/* Equal names become the same pointer: the rest of the code compares names by address. Must refuse a NUL
 * inside, as two names that differ behind it would be one C string. */
tare_status parse_name(const struct parse *p, const struct place *at, const struct wire_field *f, void *out)
{
    const char **to = out, *text = (const char *)f->bytes;
    /* was good before: most names come twice or more */
    const char *copy = map_str_find_key(&p->memory->strings, text, f->n);
    if (copy) {
        *to = copy;
        return TARE_OK;
    }
    if (f->n && memchr(text, 0, f->n))
        return parse_fail(p, at, "a name with a NUL inside, at byte %zu", (size_t)(f->bytes - p->start));
    if (!is_ascii(f->bytes, f->n) && !str_is_utf8(text, f->n))
        return parse_fail(p, at, "a name that is not UTF-8, at byte %zu", (size_t)(f->bytes - p->start));
    copy = map_str_intern(&p->memory->strings, text, f->n);
    if (!copy) return parse_nomem(p);
    *to = copy;
    return TARE_OK;
}

tare_status parse_int(const struct parse *p, const struct place *at, const struct wire_field *f, void *out)
{
    (void)p, (void)at;
    *(int64_t *)out = (int64_t)f->value;
    return TARE_OK;
}

tare_status parse_enum(const struct parse *p, const struct place *at, const struct wire_field *f, void *out)
{
    (void)p, (void)at;
    *(int *)out = f->value > INT32_MAX ? -1 : (int)f->value;
    return TARE_OK;
}

tare_status parse_bytes(const struct parse *p, const struct place *at, const struct wire_field *f, void *out)
{
    struct list bytes = {(void *)(uintptr_t)f->bytes, f->n};
    (void)p, (void)at;
    memcpy(out, &bytes, sizeof bytes);
    return TARE_OK;
}

tare_status parse_text(const struct parse *p, const struct place *at, const struct wire_field *f, void *out)
{
    const char **to = out;
    (void)at;
    struct buf text = BUF_INIT;
    str_add_utf8(&text, (const char *)f->bytes, f->n);
    const char *copy = text.failed ? NULL : map_str_intern(&p->memory->strings, text.data, strlen(text.data));
    buf_release(&text);
    if (!copy) return parse_nomem(p);
    *to = copy;
    return TARE_OK;
}

/* SPDX-License-Identifier: MIT
 * py_value.c - values of another process as text: what repr() would begin with, for the plain types; of all others the
 * type. Nothing of the program runs for it. */
#include <inttypes.h>
#include <string.h>

#include "core/buf.h"
#include "core/str.h"
#include "sample/py_process.h"

enum { VALUE_CHARS = 80, ITEMS_SHOWN = 4, NESTING = 2, TYPE_CHARS = 100 };

static void put_char(struct buf *out, uint32_t c)
{
    if (c < 0x20 || c == 0x7f) {
        buf_printf(out, "\\x%02x", c);
    } else if (c < 0x80) {
        buf_add_char(out, (char)c);
    } else if (c < 0x800) {
        buf_add_char(out, (char)(0xc0 | c >> 6));
        buf_add_char(out, (char)(0x80 | (c & 63)));
    } else if (c < 0x10000) {
        if (c >= 0xd800 && c < 0xe000) c = 0xfffd; /* a lone surrogate */
        buf_add_char(out, (char)(0xe0 | c >> 12));
        buf_add_char(out, (char)(0x80 | (c >> 6 & 63)));
        buf_add_char(out, (char)(0x80 | (c & 63)));
    } else if (c < 0x110000) {
        buf_add_char(out, (char)(0xf0 | c >> 18));
        buf_add_char(out, (char)(0x80 | (c >> 12 & 63)));
        buf_add_char(out, (char)(0x80 | (c >> 6 & 63)));
        buf_add_char(out, (char)(0x80 | (c & 63)));
    }
}

/* Its kind and where its characters are; false: it is no str that we can read. */
static bool str_data(const struct py_process *p, uint64_t object, uint32_t *kind, uint64_t *length,
                     uint64_t *data)
{
    uint8_t head[PY_STR_STATE + 8];
    uint32_t state;
    if (!object || !peek_bytes(&p->peek, object, head, sizeof head)) return false;
    memcpy(&state, head + PY_STR_STATE, sizeof state);
    *length = peek_field(head, PY_SIZE);
    *kind = state >> 2 & 7;
    if (!(state >> 5 & 1) || (*kind != 1 && *kind != 2 && *kind != 4) || *length > 1 << 30)
        return false; /* not compact */
    *data = object + (uint64_t)(state >> 6 & 1 ? p->at.str_ascii : p->at.str_wide);
    return true;
}

void py_str(const struct py_process *p, uint64_t object, size_t most, struct buf *out)
{
    uint8_t bytes[512 * 4];
    uint32_t kind;
    uint64_t length, data;
    if (!str_data(p, object, &kind, &length, &data)) return;
    size_t n = length < most ? (size_t)length : most;
    if (n > 512) n = 512;
    if (!peek_bytes(&p->peek, data, bytes, n * kind)) return;
    for (size_t i = 0; i < n; i++) {
        uint32_t c = 0;
        memcpy(&c, bytes + i * kind, kind); /* little-endian */
        put_char(out, c);
    }
}

/* ---- by type ---- */

static void put_int(const struct py_process *p, uint64_t object, struct buf *out)
{
    uint8_t head[24 + 3 * 4] = {0};
    if (!peek_bytes(&p->peek, object, head, 24 + 4)) return;
    int64_t size = (int64_t)peek_field(head, PY_SIZE);
    uint64_t digits = (uint64_t)(size < 0 ? -size : size);
    bool negative = size < 0;
    if (p->at.version >= 0x030c) {
        digits = (uint64_t)size >> 3;
        negative = (size & 3) == 2;
        if ((size & 3) == 1) digits = 0;
    }
    if (digits > 2) {
        buf_printf(out, "<an int of about %" PRIu64 " digits>", digits * 9);
        return;
    }
    uint32_t d[2] = {0, 0};
    if (digits && !peek_bytes(&p->peek, object + 24, d, digits * 4)) return;
    uint64_t v = (uint64_t)(d[0] & 0x3fffffff) | (uint64_t)(d[1] & 0x3fffffff) << 30;
    buf_printf(out, "%s%" PRIu64, negative ? "-" : "", v);
}

static void put_text(const struct py_process *p, uint64_t object, struct buf *out)
{
    uint32_t kind;
    uint64_t length, data;
    if (!str_data(p, object, &kind, &length, &data)) {
        buf_add_str(out, "<str>");
        return;
    }
    buf_add_char(out, '\'');
    py_str(p, object, VALUE_CHARS, out);
    buf_add_str(out, length > VALUE_CHARS ? "'.." : "'");
}

static void put_float(const struct py_process *p, uint64_t object, struct buf *out)
{
    double v;
    if (peek_bytes(&p->peek, object + 16, &v, sizeof v)) buf_printf(out, "%.17g", v);
}

static void put_bytes(const struct py_process *p, uint64_t object, struct buf *out)
{
    uint64_t n;
    if (peek_u64(&p->peek, object + PY_SIZE, &n)) buf_printf(out, "<%" PRIu64 " bytes>", n);
}

static void put_one(const struct py_process *p, uint64_t object, unsigned depth, struct buf *out);

static void put_items(const struct py_process *p, uint64_t object, unsigned depth, struct buf *out, bool list)
{
    uint64_t n, items = object + PY_TUPLE_ITEMS, item;
    if (!peek_u64(&p->peek, object + PY_SIZE, &n) || n > UINT32_MAX) return;
    if (list && !peek_u64(&p->peek, object + 24, &items)) return;
    buf_add_char(out, list ? '[' : '(');
    for (uint64_t i = 0; i < n && i < ITEMS_SHOWN; i++) {
        if (i) buf_add_str(out, ", ");
        if (peek_u64(&p->peek, items + i * 8, &item)) put_one(p, item, depth + 1, out);
    }
    if (n > ITEMS_SHOWN) buf_printf(out, ", .. %" PRIu64 " in all", n);
    buf_add_str(out, list ? "]" : ")");
}

static void put_list(const struct py_process *p, uint64_t object, unsigned depth, struct buf *out)
{
    put_items(p, object, depth, out, true);
}

static void put_tuple(const struct py_process *p, uint64_t object, unsigned depth, struct buf *out)
{
    put_items(p, object, depth, out, false);
}

static void put_dict(const struct py_process *p, uint64_t object, struct buf *out)
{
    uint64_t n;
    if (peek_u64(&p->peek, object + PY_SIZE, &n) && n < UINT32_MAX)
        buf_printf(out, "<dict of %" PRIu64 ">", n);
}

static void put_bool(const struct py_process *p, uint64_t object, struct buf *out)
{
    struct buf text = BUF_INIT;
    put_int(p, object, &text);
    buf_add_str(out, strcmp(text.data, "0") == 0 ? "False" : "True");
    buf_release(&text);
}

/* ---- any ---- */

static void put_one(const struct py_process *p, uint64_t object, unsigned depth, struct buf *out)
{
    static const struct {
        const char *type;
        void (*put)(const struct py_process *p, uint64_t object, struct buf *out);
        void (*put_deep)(const struct py_process *p, uint64_t object, unsigned depth, struct buf *out);
    } types[] = {{"int", put_int, NULL},   {"bool", put_bool, NULL},   {"float", put_float, NULL},
                 {"str", put_text, NULL},  {"bytes", put_bytes, NULL}, {"dict", put_dict, NULL},
                 {"list", NULL, put_list}, {"tuple", NULL, put_tuple}};
    uint64_t type, at;
    char name[TYPE_CHARS + 1] = "";
    if (!peek_u64(&p->peek, object + PY_TYPE, &type) || !peek_u64(&p->peek, type + PY_TYPE_NAME, &at) ||
        (!peek_bytes(&p->peek, at, name, TYPE_CHARS) && !peek_bytes(&p->peek, at, name, 16))) {
        buf_add_str(out, "<unreadable>");
        return;
    }
    size_t n = strnlen(name, TYPE_CHARS);
    name[n] = 0;
    if (strcmp(name, "NoneType") == 0) {
        buf_add_str(out, "None");
        return;
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(name, types[i].type) != 0) continue;
        if (types[i].put)
            types[i].put(p, object, out);
        else if (depth < NESTING)
            types[i].put_deep(p, object, depth, out);
        else
            buf_printf(out, "<%s>", name);
        return;
    }
    buf_add_char(out, '<');
    str_add_utf8(out, name, n);
    buf_printf(out, " at 0x%" PRIx64 ">", object);
}

void py_locals(const struct py_process *p, const struct py_frame *f, py_local_fn *fn, void *ctx)
{
    uint64_t names, n, name, value;
    if (!peek_u64(&p->peek, f->code->at + (uint64_t)p->at.code_names, &names) ||
        !peek_u64(&p->peek, names + PY_SIZE, &n))
        return;
    for (uint64_t i = 0; i < n && i < PY_LOCALS_MOST; i++) {
        struct buf called = BUF_INIT, shown = BUF_INIT;
        if (peek_u64(&p->peek, names + PY_TUPLE_ITEMS + i * 8, &name) &&
            peek_u64(&p->peek, f->at + (uint64_t)p->at.frame_locals + i * 8, &value) && value) {
            py_str(p, name, TYPE_CHARS, &called);
            put_one(p, value, 0, &shown);
            if (called.len && !called.failed && !shown.failed) fn(ctx, called.data, shown.data);
        }
        buf_release(&called);
        buf_release(&shown);
    }
}

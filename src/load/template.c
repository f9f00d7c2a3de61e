/* SPDX-License-Identifier: MIT
 * template.c - see template.h. The text is cut into pieces once; filling goes through them. */
#include "load/template.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/mem.h"
#include "core/rng.h"
#include "core/unit.h"
#include "core/vec.h"

enum { RANDOM_MOST = 1 << 20 };

enum kind { PLAIN, ID, NUMBER, HEX, WORDS, LINE, KEY };

struct piece {
    enum kind kind;
    const char *text; /* PLAIN, KEY: n bytes of the template's own text */
    size_t n;
    uint64_t from, count; /* NUMBER: from .. from + count - 1; HEX, WORDS: from .. count of them */
};

struct template
{
    char *name, *text;
    VEC(struct piece) pieces;
};

/* Where in the text, as a person counts. */
struct spot {
    size_t line, column;
};

static struct spot spot_of(const char *text, const char *at)
{
    struct spot s = {1, 1};
    for (const char *p = text; p < at; p++) {
        s.column = *p == '\n' ? 1 : s.column + (((unsigned char)*p & 0xc0) != 0x80);
        s.line += *p == '\n';
    }
    return s;
}

static tare_status refuse(const struct template *t, const char *at, const char *why, tare_error *err)
{
    struct spot s = spot_of(t->text, at);
    return error_set(err, TARE_INVALID, "%s: line %zu, column %zu: %s", t->name, s.line, s.column, why);
}

static const char *whole(const char *at, uint64_t *out)
{
    if (*at < '0' || *at > '9') return NULL;
    char *end;
    *out = strtoull(at, &end, 10);
    return end;
}

/* What stands behind "random:". NULL: read; else what is wrong. */
static const char *read_random(const char *at, const char *end, struct piece *p)
{
    uint64_t to;
    static const struct {
        const char *word;
        enum kind kind;
    } kinds[] = {{"hex:", HEX}, {"words:", WORDS}};
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(kinds[i].word);
        if (strncmp(at, kinds[i].word, n) != 0) continue;
        p->kind = kinds[i].kind;
        const char *after = whole(at + n, &p->count);
        p->from = p->count;
        if (after && strncmp(after, "..", 2) == 0) after = whole(after + 2, &p->count);
        if (after != end || p->from == 0 || p->from > p->count || p->count > RANDOM_MOST)
            return "a number from 1 to 1048576 was expected, or two: {{random:hex:16}}, {{random:words:20..80}}";
        return NULL;
    }
    const char *dots = whole(at, &p->from);
    p->kind = NUMBER;
    if (!dots || strncmp(dots, "..", 2) != 0 || whole(dots + 2, &to) != end)
        return "{{random:1..100}}, {{random:hex:16}} or {{random:words:50}} was expected";
    if (to < p->from || to - p->from == UINT64_MAX) return "the first number must not be above the second";
    p->count = to - p->from + 1;
    return NULL;
}

/* What stands between braces. NULL: read; else what is wrong. */
static const char *read_place(const char *at, const char *end, struct piece *p)
{
    size_t n = (size_t)(end - at);
    if (n == 2 && memcmp(at, "id", 2) == 0) {
        p->kind = ID;
    } else if (n == 4 && memcmp(at, "line", 4) == 0) {
        p->kind = LINE;
    } else if (n > 5 && memcmp(at, "line:", 5) == 0) {
        *p = (struct piece){.kind = KEY, .text = at + 5, .n = n - 5};
    } else if (n > 7 && memcmp(at, "random:", 7) == 0) {
        return read_random(at + 7, end, p);
    } else {
        return "no such place; there are {{id}}, {{random:..}}, {{line}} and {{line:key}} ({{{{ is {{ itself)";
    }
    return NULL;
}

static tare_status add_plain(struct template *t, const char *from, const char *to, tare_error *err)
{
    struct piece p = {.kind = PLAIN, .text = from, .n = (size_t)(to - from)};
    return p.n ? vec_push(&t->pieces, p, err) : TARE_OK;
}

static tare_status cut(struct template *t, tare_error *err)
{
    const char *from = t->text;
    for (;;) {
        const char *open = strstr(from, "{{");
        tare_status s = add_plain(t, from, open ? open : from + strlen(from), err);
        if (s < 0 || !open) return s;
        if (open[2] == '{' && open[3] == '{') {
            if ((s = add_plain(t, open, open + 2, err)) < 0) return s;
            from = open + 4;
            continue;
        }
        const char *close = strstr(open, "}}"), *stop = close ? close : open;
        struct piece p = {.kind = PLAIN};
        if (!close) return refuse(t, open, "{{ without }} ({{{{ is {{ itself)", err);
        const char *wrong = read_place(open + 2, stop, &p);
        if (wrong) return refuse(t, open, wrong, err);
        if ((s = vec_push(&t->pieces, p, err)) < 0) return s;
        from = close + 2;
    }
}

void template_free(struct template *t)
{
    if (!t) return;
    vec_release(&t->pieces);
    mem_free(t->name);
    mem_free(t->text);
    mem_free(t);
}

tare_status template_new(struct template **out, const char *name, struct buf text, tare_error *err)
{
    struct template *t = mem_new(1, sizeof *t);
    if (!t) return error_nomem(err, "%s", name);
    t->name = mem_strdup(name);
    t->text = mem_strndup(text.data, text.len);
    tare_status s = t->name && t->text ? TARE_OK : error_nomem(err, "%s", name);
    if (s == TARE_OK && strlen(t->text) != text.len)
        s = refuse(t, t->text + strlen(t->text), "a NUL byte, which no template has", err);
    if (s == TARE_OK) s = cut(t, err);
    if (s == TARE_OK) {
        *out = t;
    } else {
        template_free(t);
    }
    return s;
}

bool template_needs_lines(const struct template *t)
{
    for (size_t i = 0; i < t->pieces.n; i++)
        if (t->pieces.items[i].kind >= LINE) return true;
    return false;
}

bool template_is_fixed(const struct template *t)
{
    for (size_t i = 0; i < t->pieces.n; i++)
        if (t->pieces.items[i].kind != PLAIN) return false;
    return true;
}

/* ---- filling ---- */

static void add_words(struct buf *out, struct rng *r, uint64_t n)
{
    static const char *const words[] = {
        "time",  "year",  "people", "way",  "day",  "man",   "thing", "woman", "life",  "child", "world",
        "school", "state", "family", "group", "part", "place", "case",  "week",  "work",  "fact",  "hand",
        "eye",   "home",  "night",  "point", "water", "room",  "area",  "money", "story", "month",
    };
    for (uint64_t i = 0; i < n; i++) {
        if (i) buf_add_char(out, ' ');
        buf_add_str(out, words[rng_below(r, sizeof words / sizeof *words)]);
    }
}

static void add_hex(struct buf *out, struct rng *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) buf_add_char(out, "0123456789abcdef"[rng_next(r) >> 60]);
}

static void add_node(struct json *j, const struct json_node *v)
{
    switch (v->kind) {
    case TREE_NULL: json_put_null(j); break;
    case TREE_FALSE:
    case TREE_TRUE: json_put_bool(j, v->kind == TREE_TRUE); break;
    case TREE_INTEGER: json_put_int(j, v->i); break;
    case TREE_REAL: json_put_double(j, v->d); break;
    case TREE_STRING: json_put_string(j, v->s); break;
    case TREE_ARRAY:
        json_array_begin(j);
        for (const struct json_node *i = v->items.first; i; i = i->next) add_node(j, i);
        json_array_end(j);
        break;
    case TREE_OBJECT:
        json_object_begin(j);
        for (const struct json_node *i = v->items.first; i; i = i->next) {
            json_key(j, i->key);
            add_node(j, i);
        }
        json_object_end(j);
        break;
    }
}

void template_add_value(struct buf *out, const struct json_node *value)
{
    struct json j;
    size_t from = out->len;
    json_init(&j, out, JSON_STYLE_COMPACT);
    add_node(&j, value);
    if (value->kind != TREE_STRING || out->failed) return;
    out->len--; /* the quotes */
    memmove(out->data + from, out->data + from + 1, out->len - from - 1);
    out->data[--out->len] = 0;
}

/* The writer's depth has an end; some of it belongs to the caller. */
static bool fits_within(const struct json_node *v, unsigned depth)
{
    if (v->kind != TREE_ARRAY && v->kind != TREE_OBJECT) return true;
    if (!depth) return false;
    for (const struct json_node *i = v->items.first; i; i = i->next)
        if (!fits_within(i, depth - 1)) return false;
    return true;
}

bool template_fits(const struct json_node *value)
{
    return fits_within(value, JSON_MAX_DEPTH / 2);
}

static tare_status add_key(const struct template *t, const struct piece *p, const struct template_facts *f,
                           struct buf *out, tare_error *err)
{
    struct arena memory = ARENA_INIT;
    const struct json_node *root = NULL, *hint = NULL, *v = NULL;
    char *key = mem_strndup(p->text, p->n);
    tare_status s = key ? json_tree_read((struct json_room){&memory, &memory}, f->line, f->n_line, &root)
                        : error_nomem(err, "%s", t->name);
    if (s == TARE_NOMEM) {
        error_nomem(err, "line %zu of the inputs", f->line_number);
    } else if (s < 0 || root->kind != TREE_OBJECT) {
        s = error_set(err, TARE_FORMAT, "line %zu of the inputs is no JSON object, which {{line:%s}} needs",
                      f->line_number, key);
    } else if (!(v = json_tree_get(root, key, &hint)) || !template_fits(v)) {
        s = error_set(err, TARE_INVALID, "line %zu of the inputs has no '%s' for {{line:%s}}", f->line_number,
                      key, key);
    } else {
        template_add_value(out, v);
    }
    mem_free(key);
    arena_release(&memory);
    return s;
}

static void add_piece(const struct piece *p, const struct template_facts *f, struct rng *r, struct buf *out)
{
    switch (p->kind) {
    case PLAIN: buf_add(out, p->text, p->n); break;
    case ID: buf_printf(out, "%llu", (unsigned long long)f->id); break;
    case NUMBER: buf_printf(out, "%llu", (unsigned long long)(p->from + rng_below(r, p->count))); break;
    case HEX: add_hex(out, r, p->from + rng_below(r, p->count - p->from + 1)); break;
    case WORDS: add_words(out, r, p->from + rng_below(r, p->count - p->from + 1)); break;
    case LINE: buf_add(out, f->line, f->n_line); break;
    case KEY: break;
    }
}

tare_status template_fill(const struct template *t, const struct template_facts *facts, struct buf *out,
                          tare_error *err)
{
    struct rng r;
    tare_status s = TARE_OK;
    if (!facts->line && template_needs_lines(t))
        return error_set(err, TARE_INVALID,
                         "%s speaks of {{line}}: give a file of inputs, a line per request", t->name);
    rng_seed(&r, facts->seed ^ (facts->id + 1) * UINT64_C(0x9E3779B97F4A7C15));
    for (size_t i = 0; s == TARE_OK && i < t->pieces.n; i++) {
        const struct piece *p = &t->pieces.items[i];
        if (p->kind == KEY) s = add_key(t, p, facts, out, err);
        add_piece(p, facts, &r, out);
    }
    return s < 0 ? s : buf_status(out, err);
}

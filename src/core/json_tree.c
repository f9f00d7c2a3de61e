/* SPDX-License-Identifier: MIT
 * json_tree.c - see json_tree.h. The text is copied, and a NUL put behind it, at which every loop stops: no byte is
 * looked at for its place. Strings stay in the copy, shortened in place where they have escapes. */
#include "core/json_tree.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/str.h"
#include "core/unit.h"

enum { NODES_LEAST = 16, NODES_MOST = 4096, BYTES_A_NODE = 12, KEYS_SEARCHED = 64 };

struct parser {
    char *at;
    const char *end; /* of the copy: there is a NUL */
    struct json_room room;
    struct json_node *spare;
    size_t n_spare, n_more; /* how many of them are made at once */
    unsigned depth;
};

static tare_status read_value(struct parser *p, struct json_node *out);

static struct json_node *new_node(struct parser *p)
{
    if (p->n_spare == 0) {
        p->spare = arena_new(p->room.nodes, p->n_more, sizeof *p->spare);
        if (!p->spare) return NULL;
        p->n_spare = p->n_more;
    }
    p->n_spare--;
    return p->spare++;
}

static void skip_blanks(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r') p->at++;
}

/* ---- strings ---- */

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Four hexadecimal digits, or -1. */
static int32_t read_hex(const char *s)
{
    int32_t v = 0;
    for (int i = 0; i < 4; i++) {
        int c = (unsigned char)s[i], letter = c | 32;
        if (c >= '0' && c <= '9')
            v = v << 4 | (c - '0');
        else if (letter >= 'a' && letter <= 'f')
            v = v << 4 | (letter - 'a' + 10);
        else
            return -1;
    }
    return v;
}

static char *put_character(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    }
    return to;
}

/* After "\u". NUL and half of a pair are refused. */
static char *read_unicode(struct parser *p, char *to)
{
    int32_t c = read_hex(p->at), low = 0;
    if (c <= 0 || (c >= 0xdc00 && c < 0xe000)) return NULL;
    p->at += 4;
    if (c < 0xd800 || c >= 0xe000) return put_character(to, (uint32_t)c);
    if (p->at[0] != '\\' || p->at[1] != 'u') return NULL;
    low = read_hex(p->at + 2);
    if (low < 0xdc00 || low >= 0xe000) return NULL;
    p->at += 6;
    return put_character(to, 0x10000 + (((uint32_t)c - 0xd800) << 10) + ((uint32_t)low - 0xdc00));
}

/* After a backslash. */
static char *read_escape(struct parser *p, char *to)
{
    static const char from[] = "\"\\/bfnrt", becomes[] = "\"\\/\b\f\n\r\t";
    char c = *p->at++;
    const char *found = c ? strchr(from, c) : NULL;
    if (c == 'u') return read_unicode(p, to);
    if (!found) return NULL;
    *to = becomes[found - from];
    return to + 1;
}

/* From the first byte that is neither plain nor the end: an escape makes a text shorter, never longer. */
static char *read_rest(struct parser *p)
{
    char *to = p->at;
    while (to && *p->at != '"') {
        int n = 1;
        if (*p->at == '\\') {
            p->at++;
            to = read_escape(p, to);
            continue;
        }
        if (!is_plain((unsigned char)*p->at)) {
            n = (signed char)*p->at < 0 ? str_step(p->at, (size_t)(p->end - p->at)) : 0;
            if (n <= 0) return NULL;
        }
        while (n--) *to++ = *p->at++;
    }
    return to;
}

/* After its first quote. NULL: not a string. */
static const char *read_string(struct parser *p)
{
    char *from = p->at, *to;
    while (is_plain((unsigned char)*p->at)) p->at++;
    to = *p->at == '"' ? p->at : read_rest(p);
    if (!to) return NULL;
    p->at++;
    *to = 0;
    return from;
}

/* ---- numbers and words ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Where the digits from s on end; NULL: there are none. */
static char *pass_digits(char *s)
{
    char *from = s;
    while (is_digit(*s)) s++;
    return s > from ? s : NULL;
}

static tare_status read_integer(struct json_node *out, const char *from, const char *end)
{
    bool minus = *from == '-';
    uint64_t v = 0, most = (uint64_t)INT64_MAX + minus;
    for (from += minus; from < end; from++) {
        unsigned digit = (unsigned)(*from - '0');
        if (v > (most - digit) / 10) return TARE_FORMAT;
        v = v * 10 + digit;
    }
    out->kind = TREE_INTEGER;
    out->i = minus ? (int64_t)(0 - v) : (int64_t)v;
    return TARE_OK;
}

/* Few digits and a small power of ten are exact in doubles, so that one division rounds once; else strtod() does it. */
static bool few_digits(const char *from, const char *end, double *out)
{
    static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    bool minus = *from == '-';
    uint64_t v = 0;
    long decimals = -1;
    if (end - from > 16) return false;
    for (from += minus; from < end; from++) {
        if (*from == '.') {
            decimals = end - from - 1;
            continue;
        }
        if (!is_digit(*from)) return false;
        v = v * 10 + (unsigned)(*from - '0');
    }
    if (decimals < 0) return false;
    *out = (double)v / powers[decimals];
    if (minus) *out = -*out;
    return true;
}

static tare_status read_real(struct json_node *out, const char *from, const char *end)
{
    out->kind = TREE_REAL;
    if (few_digits(from, end, &out->d)) return TARE_OK;
    out->d = unit_real(from);
    return isfinite(out->d) ? TARE_OK : TARE_FORMAT;
}

static tare_status read_number(struct parser *p, struct json_node *out)
{
    char *from = p->at, *s = from + (*from == '-');
    bool real = false;
    s = *s == '0' ? s + 1 : pass_digits(s);
    if (!s) return TARE_FORMAT;
    if (*s == '.') {
        real = true;
        if (!(s = pass_digits(s + 1))) return TARE_FORMAT;
    }
    if (*s == 'e' || *s == 'E') {
        real = true;
        s++;
        if (!(s = pass_digits(s + (*s == '+' || *s == '-')))) return TARE_FORMAT;
    }
    p->at = s;
    return real ? read_real(out, from, s) : read_integer(out, from, s);
}

static tare_status read_word(struct parser *p, struct json_node *out)
{
    static const struct {
        const char *word;
        size_t n;
        enum tree_kind kind;
    } words[] = {{"null", 4, TREE_NULL}, {"false", 5, TREE_FALSE}, {"true", 4, TREE_TRUE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strncmp(p->at, words[i].word, words[i].n) != 0) continue;
        out->kind = words[i].kind;
        p->at += words[i].n;
        return TARE_OK;
    }
    return TARE_FORMAT;
}

/* ---- arrays and objects ---- */

static tare_status read_array(struct parser *p, struct json_node *out)
{
    const struct json_node **tail = &out->items.first;
    out->kind = TREE_ARRAY;
    skip_blanks(p);
    if (*p->at == ']') {
        p->at++;
        return TARE_OK;
    }
    for (;;) {
        struct json_node *item = new_node(p);
        if (!item) return TARE_NOMEM;
        tare_status s = read_value(p, item);
        if (s != TARE_OK) return s;
        *tail = item;
        tail = &item->next;
        out->items.n++;
        skip_blanks(p);
        char c = *p->at++;
        if (c == ']') return TARE_OK;
        if (c != ',') return TARE_FORMAT;
        skip_blanks(p);
    }
}

/* Enough to tell keys of one object apart, most of the time. */
static uint32_t hash_of(const char *key)
{
    size_t n = strlen(key);
    return (uint32_t)n << 24 ^ (uint32_t)(unsigned char)key[0] << 16 ^
           (uint32_t)(unsigned char)key[n / 2] << 8 ^ (unsigned char)key[n - (n > 0)];
}

static int by_key(const void *a, const void *b)
{
    const struct json_node *x = *(const struct json_node *const *)a, *y = *(const struct json_node *const *)b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return strcmp(x->key, y->key);
}

/* Anybody can make keys of one hash: in a large object equal ones are brought side by side by sorting, which takes as
 * long whatever they are. */
static tare_status check_sorted(struct parser *p, const struct json_node *object)
{
    const struct json_node **all = arena_new(p->room.nodes, object->items.n, sizeof *all);
    size_t n = 0;
    if (!all) return TARE_NOMEM;
    for (const struct json_node *m = object->items.first; m; m = m->next) all[n++] = m;
    qsort(all, n, sizeof *all, by_key);
    for (size_t i = 1; i < n; i++)
        if (by_key(&all[i - 1], &all[i]) == 0) return TARE_FORMAT;
    return TARE_OK;
}

static tare_status check_doubled(struct parser *p, const struct json_node *object)
{
    if (object->items.n > KEYS_SEARCHED) return check_sorted(p, object);
    for (const struct json_node *m = object->items.first; m; m = m->next)
        for (const struct json_node *o = object->items.first; o != m; o = o->next)
            if (o->hash == m->hash && strcmp(o->key, m->key) == 0) return TARE_FORMAT;
    return TARE_OK;
}

static tare_status read_member(struct parser *p, struct json_node *out)
{
    if (*p->at++ != '"' || !(out->key = read_string(p))) return TARE_FORMAT;
    out->hash = hash_of(out->key);
    skip_blanks(p);
    if (*p->at++ != ':') return TARE_FORMAT;
    skip_blanks(p);
    return read_value(p, out);
}

static tare_status read_object(struct parser *p, struct json_node *out)
{
    const struct json_node **tail = &out->items.first;
    out->kind = TREE_OBJECT;
    skip_blanks(p);
    if (*p->at == '}') {
        p->at++;
        return TARE_OK;
    }
    for (;;) {
        struct json_node *member = new_node(p);
        if (!member) return TARE_NOMEM;
        tare_status s = read_member(p, member);
        if (s != TARE_OK) return s;
        *tail = member;
        tail = &member->next;
        out->items.n++;
        skip_blanks(p);
        char c = *p->at++;
        if (c == '}') return check_doubled(p, out);
        if (c != ',') return TARE_FORMAT;
        skip_blanks(p);
    }
}

/* At its first byte. `out` is zeroed but for its key. */
static tare_status read_value(struct parser *p, struct json_node *out)
{
    tare_status s;
    if (++p->depth > JSON_TREE_DEPTH) return TARE_FORMAT;
    char c = *p->at;
    if (c == '"') {
        p->at++;
        out->kind = TREE_STRING;
        out->s = read_string(p);
        s = out->s ? TARE_OK : TARE_FORMAT;
    } else if (c == '{' || c == '[') {
        p->at++;
        s = c == '{' ? read_object(p, out) : read_array(p, out);
    } else {
        s = is_digit(c) || c == '-' ? read_number(p, out) : read_word(p, out);
    }
    p->depth--;
    return s;
}

tare_status json_tree_read(struct json_room room, const void *bytes, size_t len,
                           const struct json_node **root)
{
    struct parser p = {.room = room, .n_more = len / BYTES_A_NODE};
    if (p.n_more < NODES_LEAST) p.n_more = NODES_LEAST;
    if (p.n_more > NODES_MOST) p.n_more = NODES_MOST;
    p.at = (char *)(uintptr_t)arena_str_n(room.texts, bytes ? bytes : "", len);
    struct json_node *top = p.at ? new_node(&p) : NULL;
    if (!top) return TARE_NOMEM;
    p.end = p.at + len;
    skip_blanks(&p);
    if (*p.at != '{' && *p.at != '[') return TARE_FORMAT;
    tare_status s = read_value(&p, top);
    if (s != TARE_OK) return s;
    skip_blanks(&p);
    if (p.at != p.end) return TARE_FORMAT;
    *root = top;
    return TARE_OK;
}

const struct json_node *json_tree_get(const struct json_node *object, const char *key,
                                      const struct json_node **hint)
{
    const struct json_node *m = *hint;
    if (!m || strcmp(m->key, key) != 0)
        for (m = object->items.first; m && strcmp(m->key, key) != 0;) m = m->next;
    if (m) *hint = m->next;
    return m;
}

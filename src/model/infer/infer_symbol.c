/* SPDX-License-Identifier: MIT
 * infer_symbol.c - free dimensions by name. A name that is written as a sum or product of others ("past + seq", "2*s0")
 * is one, so that what the exporter knew to be equal is found equal. Anything else is a name as it stands. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/infer/infer_engine.h"

enum { SYMBOL_TEXT_MAX = 200 };

static const struct poly *named(const struct infer_engine *e, const char *name)
{
    for (size_t i = 0; i < e->options->n_dims; i++)
        if (strcmp(e->options->dims[i].name, name) == 0) return poly_int(e->space, e->options->dims[i].value);
    return poly_symbol(e->space, name);
}

static bool is_name(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && s[i] != '_' && s[i] != '.') return false;
    return n > 0;
}

/* One name or number; NULL: neither. */
static const struct poly *read_part(const struct infer_engine *e, const char *s, size_t n)
{
    char text[SYMBOL_TEXT_MAX + 1];
    while (n && *s == ' ') s++, n--;
    while (n && s[n - 1] == ' ') n--;
    if (!is_name(s, n)) return NULL;
    memcpy(text, s, n);
    text[n] = 0;
    bool number = strspn(text, "0123456789") == n && n < 18;
    return number ? poly_int(e->space, strtoll(text, NULL, 10)) : named(e, text);
}

static const struct poly *read_product(const struct infer_engine *e, const char *s, size_t n)
{
    const struct poly *all = poly_int(e->space, 1);
    for (const char *end = s + n; all && s <= end;) {
        const char *star = memchr(s, '*', (size_t)(end - s)), *stop = star ? star : end;
        all = poly_mul(e->space, all, read_part(e, s, (size_t)(stop - s)));
        s = stop + 1;
    }
    return all;
}

static const struct poly *read_sum(const struct infer_engine *e, const char *s, size_t n)
{
    const struct poly *all = poly_int(e->space, 0);
    for (const char *end = s + n; all && s <= end;) {
        const char *plus = memchr(s, '+', (size_t)(end - s)), *stop = plus ? plus : end;
        all = poly_add(e->space, all, read_product(e, s, (size_t)(stop - s)));
        s = stop + 1;
    }
    return all;
}

const struct poly *scope_symbol(const struct infer_engine *e, const char *name)
{
    size_t n = strlen(name);
    const struct poly *whole = named(e, name), *read;
    int64_t bound;
    if (poly_constant(whole, &bound) || !strpbrk(name, "+*") || n > SYMBOL_TEXT_MAX) return whole;
    read = read_sum(e, name, n);
    return read ? read : whole;
}

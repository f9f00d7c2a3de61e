/* SPDX-License-Identifier: MIT
 * short_name.c - of a demangled name of C++ or Rust what people say: no return type, no template arguments, no
 * parameters, no hash. What reads like neither stays as it is. */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "core/buf.h"
#include "symbol/demangle.h"

static bool begins(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static bool ends(const struct buf *b, const char *with)
{
    size_t n = strlen(with);
    return b->len >= n && memcmp(b->data + b->len - n, with, n) == 0;
}

/* ---- Rust ---- */

/* "..::h" and 16 digits: where the hash begins, or 0. */
static size_t rust_hash(const char *s)
{
    size_t n = strlen(s);
    if (n < 20 || !begins(s + n - 19, "::h")) return 0;
    for (size_t i = n - 16; i < n; i++)
        if (!isxdigit((unsigned char)s[i])) return 0;
    return n - 19;
}

/* Letters that symbols cannot have were written as words. */
static size_t rust_letter(const char *s, const char **letter)
{
    static const struct {
        const char *word, *letter;
    } words[] = {
        {"$LT$", "<"},  {"$GT$", ">"},  {"$RF$", "&"},  {"$BP$", "*"},  {"$C$", ","},   {"$LP$", "("},
        {"$RP$", ")"},  {"$u20$", " "}, {"$u27$", "'"}, {"$u5b$", "["}, {"$u5d$", "]"}, {"$u7b$", "{"},
        {"$u7d$", "}"}, {"$u7e$", "~"}, {"..", "::"},   {"_$LT$", "<"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (begins(s, words[i].word)) {
            *letter = words[i].letter;
            return strlen(words[i].word);
        }
    return 0;
}

static void rust_plain(struct buf *out, const char *s, size_t bytes)
{
    for (const char *end = s + bytes; s < end;) {
        const char *letter;
        size_t n = rust_letter(s, &letter);
        if (n && s + n <= end) {
            buf_add_str(out, letter);
            s += n;
        } else
            buf_add_char(out, *s++);
    }
}

/* ---- both ---- */

/* Behind the bracket that closes the one at s; at the end where none does. "->" closes nothing. */
static const char *behind(const char *s)
{
    static const char open[] = "<([{", close[] = ">)]}";
    int depth = 0;
    for (const char *c = s; *c; c++) {
        if (strchr(open, *c)) depth++;
        if (strchr(close, *c) && !(*c == '>' && c > s && c[-1] == '-') && --depth <= 0) return c + 1;
    }
    return s + strlen(s);
}

/* "operator<<", "operator()", "operator new[]": what follows the word, as far as it is its name. */
static const char *take_operator(struct buf *out, const char *s)
{
    static const char *const names[] = {"<=>", "<<=",    ">>=",       "->*",  "()",     "[]",
                                        "<<",  ">>",     "<=",        ">=",   "->",     "<",
                                        ">",   " new[]", " delete[]", " new", " delete"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (begins(s, names[i])) {
            buf_add_str(out, names[i]);
            s += strlen(names[i]);
            return begins(s, " <") ? s + 1 : s;
        }
    while (*s && *s != '(') buf_add_char(out, *s++); /* a conversion: operator unsigned int */
    return s;
}

/* Parameters end a name, unless it goes on: what lies in a function is named by it. NULL: the end. */
static const char *after_parameters(const char *s)
{
    s = behind(s);
    if (begins(s, " const")) s += 6;
    while (*s == '[') s = behind(s);
    return begins(s, "::") ? s : NULL;
}

/* "<T as Trait>::f" is T::f. */
static const char *take_qualified(struct buf *out, const char *s)
{
    const char *end = behind(s), *as = strstr(s, " as ");
    size_t n = (size_t)((as && as < end ? as : end - 1) - (s + 1));
    if (end > s + 1) buf_add(out, s + 1, n);
    return end;
}

/* One step on, or NULL at the end of the name. */
static const char *step(struct buf *out, const char *s)
{
    static const char anonymous[] = "(anonymous namespace)";
    bool word_begins = !out->len || (!isalnum((unsigned char)out->data[out->len - 1]) && !ends(out, "_"));
    if (word_begins && begins(s, "operator") && !isalnum((unsigned char)s[8]) && s[8] != '_') {
        buf_add_str(out, "operator");
        return take_operator(out, s + 8);
    }
    if (begins(s, anonymous)) {
        buf_add_str(out, anonymous);
        return s + sizeof anonymous - 1;
    }
    if (begins(s, "{lambda")) {
        buf_add_str(out, "{lambda}");
        return behind(s);
    }
    switch (*s) {
    case '<': return out->len ? behind(s) : take_qualified(out, s);
    case '(': return out->len ? after_parameters(s) : NULL;
    case '[': return begins(s, "[clone") ? NULL : behind(s);
    case ' ':
        if (begins(s, " [clone")) return NULL;
        buf_clear(out); /* it was the return type */
        return s + 1;
    case 0: return NULL;
    }
    buf_add_char(out, *s);
    return s + 1;
}

const char *demangle_short(struct arena *a, const char *full)
{
    struct buf plain = BUF_INIT, out = BUF_INIT;
    size_t hash = full ? rust_hash(full) : 0;
    if (!full) return NULL;
    if (hash)
        rust_plain(&plain, full, hash);
    else
        buf_add_str(&plain, full);
    const char *s = plain.failed || !plain.data ? NULL : plain.data;
    while (s) s = step(&out, s);
    const char *kept = out.failed || !out.len ? full : arena_str_n(a, out.data, out.len);
    buf_release(&plain);
    buf_release(&out);
    return kept;
}

/* SPDX-License-Identifier: MIT
 * json_pull.c - see json_pull.h. One buffer of the stream, one text, one byte per level. */
#include "core/json_pull.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "core/str.h"

enum expect { VALUE, VALUE_OR_END, KEY_OR_END, KEY, COLON, COMMA_OR_END, NOTHING };

tare_status json_pull_init(struct json_pull *p, struct json_source from, size_t text_most, tare_error *err)
{
    *p = (struct json_pull){.from = from, .text_most = text_most, .text = BUF_INIT};
    p->room = mem_new(1, JSON_PULL_ROOM);
    return p->room ? TARE_OK : error_nomem(err, "reading %s", from.name);
}

void json_pull_release(struct json_pull *p)
{
    mem_free(p->room);
    buf_release(&p->text);
    p->room = NULL;
}

tare_status json_pull_error(const struct json_pull *p, tare_error *err, const char *format, ...)
{
    char why[200];
    va_list ap;
    va_start(ap, format);
    vsnprintf(why, sizeof why, format, ap);
    va_end(ap);
    return error_set(err, TARE_FORMAT, "%s: line %" PRIu64 ", byte %" PRIu64 ": %s", p->from.name,
                     p->line + 1, p->before + p->at, why);
}

/* ---- bytes ---- */

enum { AT_END = -1, FAILED = -2 };

static int refill(struct json_pull *p, tare_error *err)
{
    p->before += p->n;
    p->at = p->n = 0;
    if (p->from.read(p->from.ctx, p->room, JSON_PULL_ROOM, &p->n, err) < 0) return FAILED;
    return p->n ? 0 : AT_END;
}

static inline int peek(struct json_pull *p, tare_error *err)
{
    if (p->at == p->n) {
        int how = refill(p, err);
        if (how < 0) return how;
    }
    return (unsigned char)p->room[p->at];
}

/* The next byte that is no white space. */
static int peek_token(struct json_pull *p, tare_error *err)
{
    for (;;) {
        int c = peek(p, err);
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return c;
        p->line += c == '\n';
        p->at++;
    }
}

static tare_status unexpected(struct json_pull *p, int c, const char *wanted, tare_error *err)
{
    if (c == FAILED) return err ? err->status : TARE_IO;
    if (c == AT_END)
        return json_pull_error(p, err, "the file ends here, where %s should be: it was cut off", wanted);
    if (c < 0x20 || c > 0x7e)
        return json_pull_error(p, err, "expected %s, found byte 0x%02x", wanted, (unsigned)c);
    return json_pull_error(p, err, "expected %s, found '%c'", wanted, c);
}

/* ---- texts ---- */

static void keep(struct json_pull *p, const char *bytes, size_t n)
{
    if (p->skipping) return;
    size_t left = p->text_most - p->text.len;
    if (n > left) {
        p->cut = true;
        n = left;
    }
    buf_add(&p->text, bytes, n);
}

static void keep_character(struct json_pull *p, uint32_t c)
{
    char utf8[4];
    size_t n = 1;
    if (c < 0x80) {
        utf8[0] = (char)c;
    } else if (c < 0x800) {
        utf8[0] = (char)(0xc0 | c >> 6);
        n = 2;
    } else if (c < 0x10000) {
        utf8[0] = (char)(0xe0 | c >> 12);
        n = 3;
    } else {
        utf8[0] = (char)(0xf0 | c >> 18);
        n = 4;
    }
    for (size_t i = 1; i < n; i++) utf8[i] = (char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
    keep(p, utf8, n);
}

/* Four hexadecimal digits; below 0: there are none, and the error is set. */
static int32_t read_hex(struct json_pull *p, tare_error *err)
{
    int32_t v = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        int c = peek(p, err), digit = c | 32;
        if (c >= '0' && c <= '9')
            v = v << 4 | (c - '0');
        else if (c > 0 && digit >= 'a' && digit <= 'f')
            v = v << 4 | (digit - 'a' + 10);
        else
            return unexpected(p, c, "four hexadecimal digits", err);
    }
    return v;
}

/* Half of a pair that stands alone becomes U+FFFD; so does NUL, which would end a text early. */
static tare_status read_unicode(struct json_pull *p, uint32_t *high, tare_error *err)
{
    int32_t c = read_hex(p, err);
    if (c < 0) return c;
    bool low_half = c >= 0xdc00 && c < 0xe000, high_half = c >= 0xd800 && c < 0xdc00;
    if (*high && low_half) {
        keep_character(p, 0x10000 + ((*high - 0xd800) << 10) + ((uint32_t)c - 0xdc00));
        *high = 0;
        return TARE_OK;
    }
    if (*high) keep_character(p, 0xfffd);
    *high = high_half ? (uint32_t)c : 0;
    if (!high_half) keep_character(p, low_half || !c ? 0xfffd : (uint32_t)c);
    return TARE_OK;
}

static tare_status read_escape(struct json_pull *p, uint32_t *high, tare_error *err)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int c = peek(p, err);
    const char *at = c > 0 ? strchr(from, c) : NULL;
    if (c == 'u') {
        p->at++;
        return read_unicode(p, high, err);
    }
    if (!at) return unexpected(p, c, "an escape such as \\n", err);
    p->at++;
    keep(p, to + (at - from), 1);
    return TARE_OK;
}

/* What is not UTF-8 or NUL becomes U+FFFD: names are shown and written again. A text that was cut may end within a
 * character, which then goes the same way. */
static tare_status clean_text(struct json_pull *p, tare_error *err)
{
    struct buf clean = BUF_INIT;
    const char *s = p->text.data;
    size_t n = p->text.len;
    if (p->text.failed) return error_nomem(err, "a text of %s", p->from.name);
    if (!memchr(s, 0, n) && str_is_utf8(s, n)) return TARE_OK;
    for (size_t i = 0, end; i < n; i = end + 1) {
        const char *zero = memchr(s + i, 0, n - i);
        end = zero ? (size_t)(zero - s) : n;
        str_add_utf8(&clean, s + i, end - i);
        if (zero) buf_add_str(&clean, "\xEF\xBF\xBD");
    }
    buf_release(&p->text);
    p->text = clean;
    return clean.failed ? error_nomem(err, "a text of %s", p->from.name) : TARE_OK;
}

/* Raw control characters within a text are no JSON, but programs that escape nothing write them: they are kept. */
static tare_status read_string(struct json_pull *p, tare_error *err)
{
    uint32_t high = 0; /* first half of a character past U+FFFF */
    buf_clear(&p->text);
    p->cut = false;
    p->at++;
    for (;;) {
        int c = peek(p, err);
        if (c < 0) return unexpected(p, c, "the end of a text", err);
        if (high && c != '\\') {
            keep_character(p, 0xfffd);
            high = 0;
        }
        if (c == '"') break;
        if (c == '\\') {
            p->at++;
            if (high && peek(p, err) != 'u') {
                keep_character(p, 0xfffd);
                high = 0;
            }
            tare_status s = read_escape(p, &high, err);
            if (s < 0) return s;
            continue;
        }
        size_t from = p->at;
        while (p->at < p->n && p->room[p->at] != '"' && p->room[p->at] != '\\')
            p->line += p->room[p->at++] == '\n';
        keep(p, p->room + from, p->at - from);
    }
    p->at++;
    return p->skipping ? TARE_OK : clean_text(p, err);
}

/* ---- numbers and words ---- */

static bool in_word(int c)
{
    return c > 0 && ((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || strchr("+-.", c));
}

static bool is_number(const char *s)
{
    size_t digits = 0, at = *s == '-';
    for (; s[at] >= '0' && s[at] <= '9'; at++) digits++;
    if (!digits || (digits > 1 && s[at - digits] == '0')) return false;
    if (s[at] == '.') {
        size_t from = ++at;
        while (s[at] >= '0' && s[at] <= '9') at++;
        if (at == from) return false;
    }
    if ((s[at] | 32) == 'e') {
        at++;
        if (s[at] == '+' || s[at] == '-') at++;
        size_t from = at;
        while (s[at] >= '0' && s[at] <= '9') at++;
        if (at == from) return false;
    }
    return !s[at];
}

static tare_status read_word(struct json_pull *p, enum pull_token *out, tare_error *err)
{
    static const struct {
        const char *word;
        enum pull_token token;
    } words[] = {{"true", PULL_TRUE},     {"false", PULL_FALSE},   {"null", PULL_NULL}, {"nan", PULL_NULL},
                 {"NaN", PULL_NULL},      {"-nan", PULL_NULL},     {"inf", PULL_NULL},  {"-inf", PULL_NULL},
                 {"Infinity", PULL_NULL}, {"-Infinity", PULL_NULL}};
    char word[512];
    size_t n = 0;
    int c;
    while (in_word(c = peek(p, err))) {
        if (n + 1 == sizeof word) return json_pull_error(p, err, "a number of more than %zu digits", n);
        word[n++] = (char)c;
        p->at++;
    }
    if (c == FAILED) return unexpected(p, c, "", err);
    if (!n) return unexpected(p, c, "a value", err);
    word[n] = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i].word) != 0) continue;
        *out = words[i].token;
        return TARE_OK;
    }
    if (!is_number(word)) return json_pull_error(p, err, "'%.40s' is no value", word);
    *out = PULL_NUMBER;
    buf_clear(&p->text);
    buf_add(&p->text, word, n);
    return p->text.failed ? error_nomem(err, "a number of %s", p->from.name) : TARE_OK;
}

/* ---- tokens ---- */

static tare_status open_level(struct json_pull *p, uint8_t close, tare_error *err)
{
    if (p->depth == JSON_PULL_DEPTH)
        return json_pull_error(p, err, "nested more than %d deep", JSON_PULL_DEPTH);
    p->at++;
    p->closes[p->depth++] = close;
    p->expect = close == '}' ? KEY_OR_END : VALUE_OR_END;
    return TARE_OK;
}

static void after_value(struct json_pull *p)
{
    p->expect = p->depth ? COMMA_OR_END : NOTHING;
}

static tare_status read_value(struct json_pull *p, int c, enum pull_token *out, tare_error *err)
{
    if (c == '{' || c == '[') {
        *out = c == '{' ? PULL_OBJECT : PULL_ARRAY;
        return open_level(p, c == '{' ? '}' : ']', err);
    }
    *out = PULL_STRING;
    tare_status s = c == '"' ? read_string(p, err) : read_word(p, out, err);
    after_value(p);
    return s;
}

static tare_status read_key(struct json_pull *p, tare_error *err)
{
    tare_status s = read_string(p, err);
    int c = s == TARE_OK ? peek_token(p, err) : FAILED;
    if (s < 0) return s;
    if (c != ':') return unexpected(p, c, "':'", err);
    p->at++;
    p->expect = VALUE;
    return TARE_OK;
}

/* Passes a comma; *c is what follows it. */
static tare_status pass_comma(struct json_pull *p, int *c, tare_error *err)
{
    uint8_t close = p->closes[p->depth - 1];
    if (*c == close) return TARE_OK;
    if (*c != ',') return unexpected(p, *c, close == '}' ? "',' or '}'" : "',' or ']'", err);
    p->at++;
    *c = peek_token(p, err);
    p->expect = close == '}' ? KEY : VALUE;
    return TARE_OK;
}

tare_status json_pull_next(struct json_pull *p, enum pull_token *out, tare_error *err)
{
    int c = peek_token(p, err);
    if (c == FAILED) return unexpected(p, c, "", err);
    if (p->expect == NOTHING) {
        *out = PULL_DONE;
        return c == AT_END ? TARE_OK : json_pull_error(p, err, "something follows the end of the document");
    }
    if (p->expect == COMMA_OR_END) {
        tare_status s = pass_comma(p, &c, err);
        if (s < 0) return s;
    }
    bool may_end = p->expect == COMMA_OR_END || p->expect == KEY_OR_END || p->expect == VALUE_OR_END;
    if (may_end && c == p->closes[p->depth - 1]) {
        *out = c == '}' ? PULL_OBJECT_END : PULL_ARRAY_END;
        p->at++;
        p->depth--;
        after_value(p);
        return TARE_OK;
    }
    if (p->expect == VALUE || p->expect == VALUE_OR_END) return read_value(p, c, out, err);
    if (c != '"') return unexpected(p, c, "a key in quotes", err);
    *out = PULL_KEY;
    return read_key(p, err);
}

tare_status json_pull_skip(struct json_pull *p, enum pull_token first, tare_error *err)
{
    if (first != PULL_OBJECT && first != PULL_ARRAY) return TARE_OK;
    unsigned outer = p->depth - 1;
    enum pull_token t;
    tare_status s = TARE_OK;
    p->skipping = true;
    while (s == TARE_OK && p->depth > outer) s = json_pull_next(p, &t, err);
    p->skipping = false;
    return s;
}

/* ---- numbers, exactly ---- */

/* Digits are taken one by one: a time of microseconds with three decimals loses its last digit in a double. */
bool json_pull_scaled(const char *text, unsigned decimals, int64_t *out)
{
    const uint64_t most = INT64_MAX;
    uint64_t v = 0;
    int64_t shift = decimals, exponent = 0; /* powers of ten that are still to come */
    bool minus = *text == '-', point = false, any = false, full = false;
    for (text += minus; (*text >= '0' && *text <= '9') || (*text == '.' && !point); text++) {
        if (*text == '.') {
            point = true;
            continue;
        }
        unsigned digit = (unsigned)(*text - '0');
        any = true;
        full |= v > (most - digit) / 10;
        if (full && !point) return false;
        if (full) continue; /* decimals beyond what fits */
        v = v * 10 + digit;
        shift -= point;
    }
    if (!any) return false;
    if ((*text | 32) == 'e') {
        bool down = *++text == '-';
        text += *text == '-' || *text == '+';
        for (; *text >= '0' && *text <= '9'; text++)
            if (exponent < 10000) exponent = exponent * 10 + (*text - '0');
        shift += down ? -exponent : exponent;
    }
    if (*text) return false;
    for (; shift < 0 && v; shift++) v /= 10;
    for (; shift > 0 && v; shift--) {
        if (v > most / 10) return false;
        v *= 10;
    }
    *out = minus ? -(int64_t)v : (int64_t)v;
    return true;
}

/* SPDX-License-Identifier: MIT
 * text.c - see text.h. Knows nothing of reports. */
#include "report/text.h"

#include <string.h>

#include "core/json.h"
#include "core/str.h"

size_t text_clip(const char *s, size_t max)
{
    size_t n = strnlen(s, max + 1);
    if (n <= max) return n;
    size_t at = max; /* s[at] would be the first byte left out: it must not continue a character */
    while (at > 0 && max - at < 4 && ((unsigned char)s[at] >> 6) == 2) at--;
    return ((unsigned char)s[at] >> 6) == 2 ? max : at;
}

static void add_escaped(struct buf *b, uint32_t cp)
{
    if (cp == '\n')
        buf_add_str(b, "\\n");
    else if (cp == '\t')
        buf_add_str(b, "\\t");
    else if (cp < 0x100)
        buf_printf(b, "\\x%02x", cp);
    else if (cp < 0x10000)
        buf_printf(b, "\\u%04x", cp);
    else
        buf_printf(b, "\\U%08x", cp);
}

/* Controls escaped, and the character `also` with them; 0: none. */
static void add_text(struct buf *b, const char *s, size_t n, char also)
{
    const char *at = s, *end = s + n;
    while (at < end) {
        uint32_t cp = 0;
        size_t len = str_decode(at, (size_t)(end - at), &cp);
        if (len == 0) {
            buf_add_str(b, "\xEF\xBF\xBD");
            len = 1;
        } else if (str_is_control(cp) || (also && cp == (unsigned char)also)) {
            add_escaped(b, cp);
        } else {
            buf_add(b, at, len);
        }
        at += len;
    }
}

void text_plain(struct buf *b, const char *s, size_t n)
{
    add_text(b, s, n, 0);
}

void text_name(struct buf *b, const char *s, size_t max)
{
    text_plain(b, s, text_clip(s, max));
}

void text_folded(struct buf *b, const char *s, size_t n)
{
    add_text(b, s, n, ';');
}

void text_json(struct buf *b, const char *s, size_t n)
{
    struct json j;
    json_init(&j, b, JSON_STYLE_COMPACT);
    json_put_string_n(&j, s, n);
}

uint32_t text_columns(const char *s, size_t n)
{
    uint32_t columns = 0;
    for (size_t i = 0; i < n; i++) columns += ((unsigned char)s[i] >> 6) != 2;
    return columns;
}

/* A word that is wider than a line stays whole: it may be a path or a command that somebody copies. A line break in the
 * text is kept. */
void text_wrap(struct buf *out, const char *text, struct text_box box)
{
    unsigned column = box.column;
    bool at_start = true;
    for (const char *s = text; *s;) {
        size_t len = strcspn(s, " \n");
        unsigned columns = text_columns(s, len);
        bool full = !at_start && box.width && column + 1 + columns > box.width;
        if (*s == '\n' || full) {
            buf_printf(out, "\n%*s", s[0] == '\n' && s[1] == '\n' ? 0 : (int)box.indent, "");
            column = box.indent;
            at_start = true;
            s += *s == '\n';
            continue;
        }
        if (!at_start) buf_add_char(out, ' ');
        buf_add(out, s, len);
        column += columns + !at_start;
        at_start = false;
        s += len;
        if (*s == ' ') s++;
    }
}

/* ---- lines ---- */

static bool is_among(const char *const *words, const char *word, size_t n)
{
    for (; *words; words++)
        if (strlen(*words) == n && memcmp(*words, word, n) == 0) return true;
    return false;
}

const char *text_verdict_style(const struct report_style *style, const char *word, size_t n)
{
    static const char *const good[] = {"improved", "pass", NULL};
    static const char *const bad[] = {"regressed", "fail", "critical", NULL};
    static const char *const doubt[] = {"inconclusive", "unverified", "warn", NULL};
    if (is_among(good, word, n)) return style->good;
    if (is_among(bad, word, n)) return style->bad;
    return is_among(doubt, word, n) ? style->warn : "";
}

void text_heading(struct stream *s, const char *title)
{
    buf_printf(&s->out, "\n%s%s%s\n", s->style.bold, title, s->style.plain);
}

enum { LINE_INDENT = 11 };

void text_line(struct stream *s, const char *name, struct buf *value)
{
    if (value->failed) s->out.failed = 1;
    if (value->len) {
        buf_printf(&s->out, "%s%-10s %s", s->style.dim, name, s->style.plain);
        text_wrap(&s->out, value->data, (struct text_box){LINE_INDENT, LINE_INDENT, s->style.width});
        buf_add_char(&s->out, '\n');
    }
    buf_release(value);
}

void text_note(struct stream *s, struct buf *text)
{
    if (text->failed) s->out.failed = 1;
    if (text->len) {
        buf_add_str(&s->out, s->style.dim);
        text_wrap(&s->out, text->data, (struct text_box){0, 2, s->style.width});
        buf_printf(&s->out, "%s\n", s->style.plain);
    }
    buf_release(text);
}

/* SPDX-License-Identifier: MIT
 * markup.c - see markup.h. */
#include "report/markup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

/* What stands for a character: pairs up to a NULL. */
struct stand_in {
    char c;
    const char *text;
};

static bool add_stand_in(struct buf *b, const struct stand_in *table, char c)
{
    for (; table->text; table++) {
        if (table->c != c) continue;
        buf_add_str(b, table->text);
        return true;
    }
    return false;
}

/* The text without controls, as every format begins; the failure of one is the other's. */
static struct buf cleaned(struct buf *b, const char *text)
{
    struct buf clean = BUF_INIT;
    text_name(&clean, text, 1000);
    if (clean.failed) b->failed = 1;
    return clean;
}

void markup_md_bytes(struct buf *b, const char *text, size_t n)
{
    static const struct stand_in table[] = {
        {'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'@', "&#64;"}, /* mentions nobody */
        {0, NULL},
    };
    for (size_t i = 0; i < n; i++) {
        if (add_stand_in(b, table, text[i])) continue;
        if (strchr("\\`*_{}[]|#!~$", text[i])) buf_add_char(b, '\\');
        buf_add_char(b, text[i]);
    }
}

void markup_md(struct buf *b, const char *text)
{
    struct buf clean = cleaned(b, text);
    markup_md_bytes(b, clean.data, clean.len);
    buf_release(&clean);
}

/* Controls are escaped already, so that every XML parser takes it; U+FFFE and U+FFFF are UTF-8 but no XML. */
void markup_xml(struct buf *b, const char *text)
{
    static const struct stand_in table[] = {{'<', "&lt;"},   {'>', "&gt;"},    {'&', "&amp;"},
                                            {'"', "&quot;"}, {'\'', "&apos;"}, {0, NULL}};
    struct buf clean = cleaned(b, text);
    for (size_t i = 0; i + 2 < clean.len; i++)
        if (memcmp(clean.data + i, "\xEF\xBF", 2) == 0 && (unsigned char)clean.data[i + 2] >= 0xBE)
            clean.data[i + 2] = (char)0xBD;
    for (size_t i = 0; i < clean.len; i++)
        if (!add_stand_in(b, table, clean.data[i])) buf_add_char(b, clean.data[i]);
    buf_release(&clean);
}

void markup_command(struct buf *b, const char *text, int property)
{
    struct buf clean = cleaned(b, text);
    for (size_t i = 0; i < clean.len; i++) {
        char c = clean.data[i];
        bool special = c == '%' || (property && (c == ':' || c == ','));
        if (special)
            buf_printf(b, "%%%02X", (unsigned)(unsigned char)c);
        else
            buf_add_char(b, c);
    }
    buf_release(&clean);
}

/* ---- CSV ---- */

/* Would a spreadsheet compute it? Models and documents come from strangers: `=cmd|...` as the name of a layer must
 * stay a name. Tab and CR, which some skip, are escaped by text_plain() already. Signed numbers and a dash alone, which
 * is what has no name, are harmless. The wide forms count in East Asian locales. */
static bool is_formula(const char *text)
{
    static const char *const wide[] = {"\uff1d", "\uff0b", "\uff0d", "\uff20"};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (strncmp(text, wide[i], strlen(wide[i])) == 0) return true;
    if (!*text || !strchr("=+-@", *text) || strcmp(text, "-") == 0) return false;
    char *end;
    strtod(text, &end);
    return *end || strspn(text + 1, "0123456789.eE+-") < strlen(text + 1);
}

void csv_field(struct buf *b, const char *text)
{
    if (!text) return;
    size_t n = strlen(text);
    bool quote = strpbrk(text, ",\"\r\n") || (n && (text[0] == ' ' || text[n - 1] == ' '));
    struct buf clean = BUF_INIT;
    text_plain(&clean, text, n);
    if (clean.failed) b->failed = 1;
    if (quote) buf_add_char(b, '"');
    if (is_formula(clean.data)) buf_add_char(b, '\'');
    for (size_t i = 0; i < clean.len; i++) {
        if (clean.data[i] == '"') buf_add_char(b, '"');
        buf_add_char(b, clean.data[i]);
    }
    if (quote) buf_add_char(b, '"');
    buf_release(&clean);
}

void csv_number(struct buf *b, bool known, double v)
{
    buf_add_char(b, ',');
    if (!known || !isfinite(v)) return;
    if (v == floor(v) && fabs(v) < 1e15)
        buf_printf(b, "%.0f", v);
    else
        buf_printf(b, "%.15g", v);
}

/* SPDX-License-Identifier: MIT
 * markup.c - see markup.h. */
#include "report/markup.h"

#include <stdbool.h>
#include <string.h>

#include "report/text.h"

void markup_md_bytes(struct buf *b, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '<')
            buf_add_str(b, "&lt;");
        else if (text[i] == '>')
            buf_add_str(b, "&gt;");
        else if (text[i] == '&')
            buf_add_str(b, "&amp;");
        else if (text[i] == '@')
            buf_add_str(b, "&#64;"); /* mentions nobody */
        else if (strchr("\\`*_{}[]|#!~$", text[i]))
            buf_printf(b, "\\%c", text[i]);
        else
            buf_add_char(b, text[i]);
    }
}

void markup_md(struct buf *b, const char *text)
{
    struct buf clean = BUF_INIT;
    text_plain(&clean, text, text_clip(text, 1000));
    if (clean.failed) b->failed = 1;
    markup_md_bytes(b, clean.data, clean.len);
    buf_release(&clean);
}

/* Attribute or element text; controls were escaped by text_plain(), so that every XML parser takes it. */
static void xml(struct buf *b, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        switch (text[i]) {
        case '<': buf_add_str(b, "&lt;"); break;
        case '>': buf_add_str(b, "&gt;"); break;
        case '&': buf_add_str(b, "&amp;"); break;
        case '"': buf_add_str(b, "&quot;"); break;
        case '\'': buf_add_str(b, "&apos;"); break;
        default: buf_add_char(b, text[i]);
        }
    }
}

/* U+FFFE and U+FFFF are UTF-8 but no XML. */
void markup_xml(struct buf *b, const char *text)
{
    struct buf clean = BUF_INIT;
    text_plain(&clean, text, text_clip(text, 1000));
    for (size_t i = 0; i + 2 < clean.len; i++)
        if (memcmp(clean.data + i, "\xEF\xBF", 2) == 0 && (unsigned char)clean.data[i + 2] >= 0xBE)
            clean.data[i + 2] = (char)0xBD;
    if (clean.failed) b->failed = 1;
    xml(b, clean.data, clean.len);
    buf_release(&clean);
}

void markup_command(struct buf *b, const char *text, int property)
{
    struct buf clean = BUF_INIT;
    text_plain(&clean, text, text_clip(text, 1000));
    if (clean.failed) b->failed = 1;
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

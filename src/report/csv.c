/* SPDX-License-Identifier: MIT
 * csv.c - see csv.h. */
#include "report/csv.h"

#include <math.h>
#include <string.h>

#include "report/text.h"

void csv_field(struct buf *b, const char *text)
{
    if (!text) return;
    size_t n = strlen(text);
    bool quote = strpbrk(text, ",\"\r\n") || (n && (text[0] == ' ' || text[n - 1] == ' '));
    struct buf clean = BUF_INIT;
    text_plain(&clean, text, n);
    if (clean.failed) b->failed = 1;
    if (quote) buf_add_char(b, '"');
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

/* SPDX-License-Identifier: MIT
 * csv.c - see csv.h. */
#include "report/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

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

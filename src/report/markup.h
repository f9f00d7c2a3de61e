/* SPDX-License-Identifier: MIT
 * markup.h - texts from outside inside Markdown, XML, workflow commands and CSV: none can open a tag, a link, a cell or
 * another command, or be computed by a spreadsheet. */
#ifndef REPORT_MARKUP_H
#define REPORT_MARKUP_H

#include <stdbool.h>

#include "core/buf.h"

void markup_md_bytes(struct buf *b, const char *text, size_t n); /* what is clean already */
void markup_md(struct buf *b, const char *text);
void markup_xml(struct buf *b, const char *text); /* attribute or element text */
/* The message of a GitHub workflow command; `property`: of its title and the like. */
void markup_command(struct buf *b, const char *text, int property);

/* ---- fields of CSV (RFC 4180) ---- */

/* A text, quoted where it must be; nothing for NULL. Controls become visible, and what a spreadsheet would compute
 * (`=1+1`) gets an apostrophe in front, which makes it text. */
void csv_field(struct buf *b, const char *text);
/* A comma, then the number with all its digits; nothing after the comma when unknown or not finite. */
void csv_number(struct buf *b, bool known, double v);

#endif

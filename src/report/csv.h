/* SPDX-License-Identifier: MIT
 * csv.h - fields of CSV (RFC 4180) as all of tare's writers make them. */
#ifndef REPORT_CSV_H
#define REPORT_CSV_H

#include <stdbool.h>

#include "core/buf.h"

/* A text, quoted where it must be; nothing for NULL. Controls become visible, and what a spreadsheet
 * would compute (`=1+1`) gets an apostrophe in front, which makes it text. */
void csv_field(struct buf *b, const char *text);

/* A comma, then the number with all its digits; nothing after the comma when unknown or not finite. */
void csv_number(struct buf *b, bool known, double v);

#endif

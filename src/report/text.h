/* SPDX-License-Identifier: MIT
 * text.h - names and numbers as a person, or a file format, may see them. Names come from the program
 * that was measured: any bytes, any length. Whatever they are, what is written here is valid UTF-8 and
 * cannot move a terminal's cursor. Numbers carry no more digits than their interval supports. */
#ifndef REPORT_TEXT_H
#define REPORT_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/calls/calltree.h"
#include "core/buf.h"

#define TEXT_NAME_MAX 4096 /* where a name is repeated for each event or path, it is cut here */

/* The bytes of s that make at most `max`, whole characters only. */
size_t text_clip(const char *s, size_t max);

/* Length of the well-formed UTF-8 sequence at s (n > 0 bytes there) and its code point; 0: not one. */
size_t text_decode(const char *s, size_t n, uint32_t *cp);
bool text_is_control(uint32_t cp); /* moves a cursor, changes colours or the direction of reading */

void text_plain(struct buf *b, const char *s, size_t n);  /* for terminals: controls as \n, \x1b */
void text_folded(struct buf *b, const char *s, size_t n); /* also ';' as \x3b: one frame of a folded stack */
void text_json(struct buf *b, const char *s, size_t n);   /* quoted */
uint32_t text_columns(const char *s, size_t n);           /* characters, for aligning */

void text_int(struct buf *b, int64_t n); /* -1,234 */

/* A time to the digits that +/- half_ns supports, four at most; half_ns 0 or NAN: exact. NAN: "-". */
void text_time(struct buf *b, double ns, double half_ns);
/* The same for an estimate: "-" when unknown; "< X" when nothing can be told from zero or it is below, X the
 * larger of limit_ns and hi. */
void text_estimate(struct buf *b, struct interval e, double limit_ns);
void text_half(struct buf *b, struct interval e); /* the wider half of the interval: "12 us" */
void text_share(struct buf *b, double share);     /* 0.123 as "12.3 %" */
void text_rate(struct buf *b, double per_second); /* "1,234/s", "0.25/s" */

void text_date(struct buf *b, uint64_t unix_ns, bool iso); /* "2026-11-15 05:42:09 UTC" or RFC 3339 with ms */

#endif

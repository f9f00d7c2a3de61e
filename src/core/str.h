/* SPDX-License-Identifier: MIT
 * str.h - text from and for people: UTF-8, quantities in and out. Parsing is strict (the whole
 * string or an error that says what was expected) and knows nothing of locales. */
#ifndef CORE_STR_H
#define CORE_STR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/clock.h"
#include "core/error.h"

/* ---- UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF ---- */

bool str_is_utf8(const char *s, size_t n);

/* Append s, with U+FFFD in place of what is not UTF-8: one for each longest beginning of a valid sequence,
 * else one for each byte. */
void str_add_utf8(struct buf *out, const char *s, size_t n);

/* ---- quantities in ---- */

/* Bytes: digits with an optional fraction, then nothing or B; K M G T (1024); KiB MiB GiB TiB (1024);
 * KB MB GB TB (1000). Any case. "64M" is 67108864, "4GB" 4000000000. Rounded to whole bytes. */
tare_status str_parse_bytes(const char *text, uint64_t *out, tare_error *err);

/* Time: digits with an optional fraction and a unit, ns us ms s m (or min) h d; several add up, as in 1m30s.
 * A bare number but 0 is refused. Rounded to ns. */
tare_status str_parse_duration(const char *text, struct duration *out, tare_error *err);

/* ---- quantities out: three significant digits, one space, the unit ---- */

void str_add_duration(struct buf *out, double ns);   /* 812 ns, 1.23 ms, 2 m 05 s, 3 h 07 m; - for NAN */
void str_add_bytes(struct buf *out, uint64_t bytes); /* 512 B, 1.50 GiB */
void str_add_count(struct buf *out, uint64_t n);     /* 1,234,567 */
/* "1 process", "0 processes", "1,234 processes". */
void str_add_counted(struct buf *out, uint64_t n, const char *one, const char *many);

#endif

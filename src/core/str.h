/* SPDX-License-Identifier: MIT
 * str.h - text from and for people: UTF-8, and quantities out. How people write quantities is core/unit.h. */
#ifndef CORE_STR_H
#define CORE_STR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"

/* ---- UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF ---- */

bool str_is_utf8(const char *s, size_t n);

/* Append s, with U+FFFD in place of what is not UTF-8: one for each longest beginning of a valid sequence,
 * else one for each byte. */
void str_add_utf8(struct buf *out, const char *s, size_t n);

/* ---- quantities out: three significant digits, one space, the unit ---- */

void str_add_duration(struct buf *out, double ns);   /* 812 ns, 1.23 ms, 2 m 05 s, 3 h 07 m; - for NAN */
void str_add_bytes(struct buf *out, uint64_t bytes); /* 512 B, 1.50 GiB */
void str_add_count(struct buf *out, uint64_t n);     /* 1,234,567 */
/* "1 process", "0 processes", "1,234 processes". */
void str_add_counted(struct buf *out, uint64_t n, const char *one, const char *many);

#endif

/* SPDX-License-Identifier: MIT
 * str.h - text from and for people: UTF-8, and quantities out. How people write quantities is core/unit.h. */
#ifndef CORE_STR_H
#define CORE_STR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"

/* ---- UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF ---- */

/* The length of the valid sequence at s (1 .. 4; n > 0 bytes are there), or minus the length of what one U+FFFD
 * replaces (-1 .. -3): the longest beginning of a valid sequence, else one byte. */
int str_step(const char *s, size_t n);
size_t str_decode(const char *s, size_t n, uint32_t *cp); /* its length and code point; 0: not one */

/* Moves a terminal's cursor, changes its colours or the direction of reading, or is not seen at all: C0, DEL, C1, line
 * and paragraph separators, marks of direction, the byte order mark, tags. Never shown as it is, never in JSON. */
bool str_is_control(uint32_t cp);

bool str_is_utf8(const char *s, size_t n);

/* Append s, with U+FFFD in place of what is not UTF-8. */
void str_add_utf8(struct buf *out, const char *s, size_t n);

/* ---- names of files ---- */

bool str_ends_with(const char *s, const char *tail);
const char *str_file_name(const char *path); /* after its last '/'; the whole where nothing follows one */

#endif

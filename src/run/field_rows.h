/* SPDX-License-Identifier: MIT
 * field_rows.h - how the rows of a document are spelled (fields.h has what they mean). HERE is the struct whose
 * members the rows name: #define it before them and #undef it after. Private to src/run. */
#ifndef RUN_FIELD_ROWS_H
#define RUN_FIELD_ROWS_H

#include "run/fields.h"

/* clang-format off */
#define ROW(key, kind, flags, member) key, FIELD_##kind, flags, offsetof(struct HERE, member)
#define TEXT(key, flags, member, rule_) {ROW(key, STRING, flags, member), NULL, rule_}
#define NUM(key, kind, flags) {ROW(#key, kind, flags, key), NULL, NULL}
#define SUB(key, kind, flags, type_) {ROW(#key, kind, flags, key), &type_, NULL}
#define TYPE(name, rows, closed_, check_) static TYPE_SHARED(name, rows, closed_, check_)
#define TYPE_SHARED(name, rows, closed_, check_)                                                   \
    const struct run_type name = {rows, sizeof rows / sizeof *rows, sizeof(struct HERE), closed_, check_}
/* clang-format on */

#endif

/* SPDX-License-Identifier: MIT
 * as_rows.h - include it, then a list of fields: the lines become rows of fields.h, HERE_type for each struct, and
 * rule_NAME for each form of text. No guard: once for each list. Private to fields.c. */

#define ROWS_(name) static const struct run_field name##_rows[] =
#define TYPE_(name, closed_, check_)                                                                \
    static const struct run_type name##_type = {.fields = name##_rows,                              \
                                                .n_fields = sizeof name##_rows / sizeof *name##_rows, \
                                                .size = sizeof(struct name),                        \
                                                .closed = closed_,                                  \
                                                .check = check_};
#define ROWS(name) ROWS_(name)
#define TYPE(name, closed, check) TYPE_(name, closed, check)
#define ROW(key_, kind_, flags_, member) \
    .key = key_, .kind = FIELD_##kind_, .flags = flags_, .offset = offsetof(struct HERE, member)

#define STRUCT(key, help) ROWS(HERE) {
#define RECORD(key, help) ROWS(HERE) {
#define END(closed, check)               \
    }                                    \
    ;                                    \
    TYPE(HERE, FIELD_##closed, check)
#define ARENA()

#define TEXT_AS(key, name, need, form, help) {ROW(#key, STRING, FIELD_##need, name), .rule = &rule_##form},
#define U64(name, need, unit, help) {ROW(#name, U64, FIELD_##need, name)},
#define I64(name, need, unit, help) {ROW(#name, I64, FIELD_##need, name)},
#define F64(name, range, unit, help) {ROW(#name, F64, FIELD_##range, name)},
#define BOOL_AS(key, name, help) {ROW(#key, BOOL, 0, name)},
#define NUMBER(name, range, unit, help) {ROW(#name, F64, FIELD_REQUIRED | FIELD_PLAIN | FIELD_##range, name)},
#define COUNT(name, most, help) {ROW(#name, U64, FIELD_REQUIRED | FIELD_PLAIN, name)},
#define INTEGER(name, least, most, help) {ROW(#name, I64, FIELD_REQUIRED | FIELD_PLAIN, name)},
#define TIME(name, help) {ROW(#name, OBJECT, FIELD_FLAT, name), .type = &time_type},
#define ESTIMATE_AS(key, name, unit, help) {ROW(#key, OBJECT, FIELD_FLAT, name), .type = &estimate_type},
#define INTERVAL(name, range, unit, help)                                             \
    {ROW("value", F64, FIELD_REQUIRED | FIELD_PLAIN | FIELD_##range, name.value)},    \
        {ROW("lo", F64, FIELD_##range, name.lo)}, {ROW("hi", F64, FIELD_##range, name.hi)},
#define OBJECT_AS(key, name, how, type_, help) {ROW(#key, OBJECT, FIELD_##how, name), .type = &type_##_type},
#define LIST(name, need, type_, help) {ROW(#name, LIST, FIELD_##need, name), .type = &type_##_type},
#define MAP(name, how, help) {ROW(#name, MAP, FIELD_##how, name)},
#define REASONS(name) {ROW(#name, REASONS, 0, name)},
#define COUNTS(name, most, help) {ROW(#name, COUNTS, FIELD_REQUIRED, name)},
#define SAMPLES(name, help) {ROW(#name, SAMPLES, 0, name)},
#define PATTERN(name, expect, pattern) static const struct run_rule rule_##name = {expect, is_##name, NULL};
#define WORDS(name, expect, ...)                                         \
    static const struct run_rule rule_##name = {                         \
        expect, NULL, (const char *const[]){__VA_ARGS__, NULL}};

#include "run/as_both.h"

/* SPDX-License-Identifier: MIT
 * as_structs.h - include it, then a list of fields (run_fields.def has what the words mean): the lines become the
 * members of structs. No guard: once for each list. */

#define STRUCT(key, help) \
    struct HERE {         \
        bool known;
#define RECORD(key, help) struct HERE {
#define END(closed, check) \
    }                      \
    ;
#define ARENA() struct arena arena;

#define TEXT_AS(key, name, need, rule, help) const char *name;
#define U64(name, need, unit, help) struct known_u64 name;
#define I64(name, need, unit, help) struct known_i64 name;
#define F64(name, range, unit, help) struct known_f64 name;
#define BOOL_AS(key, name, help) struct known_bool name;
#define NUMBER(name, range, unit, help) double name;
#define COUNT(name, most, help) uint64_t name;
#define INTEGER(name, least, most, help) int64_t name;
#define TIME(name, help) struct run_estimate name;
#define ESTIMATE_AS(key, name, unit, help) struct run_estimate name;
#define INTERVAL(name, range, unit, help) struct run_estimate name;
#define OBJECT_AS(key, name, how, type, help) struct type name;
#define LIST(name, need, type, help) RUN_LIST_OF(struct type) name;
#define MAP(name, how, help) struct run_map name;
#define REASONS(name) struct run_map name;
#define COUNTS(name, most, help) \
    uint64_t *name;              \
    size_t n_##name;
#define SAMPLES(name, help) struct run_samples name;
#define PATTERN(name, expect, pattern)
#define WORDS(name, ...)

#include "run/as_both.h"

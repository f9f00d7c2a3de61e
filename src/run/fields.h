/* SPDX-License-Identifier: MIT
 * fields.h - the run document as a table: one row per field, from which it is written, read and checked, so
 * that the three cannot disagree. Private to src/run. */
#ifndef RUN_FIELDS_H
#define RUN_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

enum run_kind {
    FIELD_STRING,  /* const char * */
    FIELD_U64,     /* struct known_u64; FIELD_PLAIN: uint64_t */
    FIELD_I64,     /* struct known_i64; FIELD_PLAIN: int64_t */
    FIELD_F64,     /* struct known_f64; FIELD_PLAIN: double */
    FIELD_BOOL,    /* struct known_bool */
    FIELD_OBJECT,  /* a struct of its own type; not required: begins with `bool known` */
    FIELD_LIST,    /* RUN_LIST_OF(struct); not required: empty is null */
    FIELD_MAP,     /* struct run_map */
    FIELD_REASONS, /* struct run_map of texts */
    FIELD_COUNTS,  /* uint64_t *, and a size_t right after it */
    FIELD_SAMPLES  /* struct run_samples */
};

enum field_flags {
    FIELD_REQUIRED = 1, /* present and not null */
    FIELD_PLAIN = 2,    /* always known once the struct around it is */
    FIELD_POSITIVE = 4, /* F64: 0 or above */
    FIELD_SHARE = 8,    /* F64: 0 to 1 */
    FIELD_FLAT = 16     /* written on one line */
};

/* What a string must look like. */
struct run_rule {
    const char *expect; /* "26 characters of Crockford base 32" */
    bool (*ok)(const char *s);
};

struct run_type;

struct run_field {
    const char *key;
    enum run_kind kind;
    unsigned flags;
    size_t offset;
    const struct run_type *type; /* OBJECT, LIST */
    const struct run_rule *rule; /* STRING */
};

struct run_type {
    const struct run_field *fields;
    size_t n_fields;
    size_t size;
    bool closed;                        /* a newer minor version adds nothing here */
    const char *(*check)(const void *); /* what is wrong with the struct as a whole, or NULL */
};

/* All but "schema", which the reader and the writer handle first. */
extern const struct run_type run_type_document;

extern const struct run_rule field_word; /* short lower-case names: kinds, types, methods */

const struct run_field *field_find(const struct run_type *t, const char *key);
bool field_key_ok(const char *key); /* of a map: 1 to RUN_KEY_MAX bytes of printable ASCII */

/* What is wrong with a number for this field, or NULL. */
const char *field_number_fault(const struct run_field *f, double v);

#endif

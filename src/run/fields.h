/* SPDX-License-Identifier: MIT
 * fields.h - documents as tables: one row per field, from which it is written, read and checked, so that the three
 * cannot disagree. The rows come from the lists *_fields.def. Private to src/run. */
#ifndef RUN_FIELDS_H
#define RUN_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/buf.h"
#include "core/arena.h"
#include "run/document.h"

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
    FIELD_OPTIONAL = 0,
    FIELD_REQUIRED = 1, /* present and not null */
    FIELD_PLAIN = 2,    /* always known once the struct around it is */
    FIELD_ANY = 0,
    FIELD_POSITIVE = 4, /* F64: 0 or above */
    FIELD_SHARE = 8,    /* F64: 0 to 1 */
    FIELD_FLAT = 16,    /* written on one line */
    FIELD_REQUIRED_FLAT = FIELD_REQUIRED | FIELD_FLAT,
    FIELD_WHOLE = 32 /* F64: an integer in the text, 0 or above: times in ns */
};
enum { FIELD_OPEN, FIELD_CLOSED }; /* whether a newer minor version may add to an object */

/* What a text must look like: one of the words, or what ok() says. */
struct run_rule {
    const char *expect; /* "26 characters of Crockford base 32" */
    bool (*ok)(const char *s);
    const char *const *words; /* NULL: none */
};
bool field_text_ok(const struct run_rule *rule, const char *s);

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

/* A kind of document: what it is called, and the rows of its top level. */
struct run_form {
    const char *schema;          /* "tare.run/1" */
    const char *what;            /* "run document" */
    const struct run_type *type; /* all but "schema", which the reader and the writer handle first */
};
extern const struct run_form run_form, watched_form, comparison_form, gpu_form, requests_form, sla_form;
extern const struct run_type *const field_packed; /* the text form of struct run_samples */
extern const struct run_type *const field_case, *const field_host;

/* Append obj as JSON text by its rows: run_write() for any form. `arena` is the one that holds its texts. */
struct fields_to {
    struct buf *out;
    size_t
        page_step; /* for a page: no white space, one in so many raw samples, as numbers. 0: a document to keep */
};
tare_status fields_write(const struct run_form *form, const void *obj, const struct arena *arena,
                         struct fields_to to, tare_error *err);

/* Read `len` bytes into the zeroed obj, texts into the arena; on failure both are half filled. */
struct fields_text {
    const char *name; /* what errors call it */
    const void *bytes;
    size_t len;
};
tare_status fields_read(const struct run_form *form, const struct fields_text *text, void *obj,
                        struct arena *arena, tare_error *err);

const struct run_field *field_find(const struct run_type *t, const char *key);
bool field_key_ok(const char *key); /* of a map: 1 to RUN_KEY_MAX bytes of printable ASCII */

/* ---- where in a document we are: cases[2].latency_ns.p50.value, as a chain on the stack that costs nothing until an
 * error wants its text ---- */

struct path {
    const struct path *up; /* NULL: the document itself */
    const char *key;       /* NULL: an item of a list */
    size_t index;
};

/* Writes at most size - 1 bytes and a NUL; a path too long keeps its beginning. Returns `out`. */
char *path_text(const struct path *p, char *out, size_t size);

size_t path_depth(const struct path *p); /* steps from the document */

/* The same without the first `skip` steps. */
char *path_text_below(const struct path *p, size_t skip, char *out, size_t size);

/* What is wrong with a number for this field, or NULL. */
const char *field_number_fault(const struct run_field *f, double v);

#endif

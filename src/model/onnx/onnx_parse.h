/* SPDX-License-Identifier: MIT
 * onnx_parse.h - between the files of the ONNX reader: where in the model we are, what each message may hold,
 * and errors that name the place. Private to src/model/onnx*.c. */
#ifndef MODEL_ONNX_PARSE_H
#define MODEL_ONNX_PARSE_H

#include "core/file.h"
#include "core/map.h"
#include "core/wire.h"
#include "model/onnx/external.h"
#include "model/onnx/onnx.h"

/* What a model's pointers point to. Freed as a whole. */
struct onnx_memory {
    struct arena arena;
    struct map_str strings; /* each distinct one once, in the arena: equal names are equal pointers */
    struct file_view view;  /* empty when the bytes are borrowed */
    struct external external;
};

struct parse {
    const char *file; /* for errors */
    const uint8_t *start;
    struct onnx_memory *memory;
    tare_error *err;
};

/* A place is a chain on the stack, so that it costs nothing until an error needs its name. */
enum { PARSE_NO_INDEX = -1, PARSE_MAX_DEPTH = 100 };
struct place {
    const struct place *up; /* NULL: the model itself */
    const char *field;
    int64_t index;
    unsigned depth;
};

/* What a message may hold: by field number, its name and the wire types it may come as. NULL: skipped. */
enum { AS_VARINT = 1 << WIRE_VARINT, AS_BYTES = 1 << WIRE_BYTES, AS_FIXED32 = 1 << WIRE_FIXED32 };
enum { AS_FIXED64 = 1 << WIRE_FIXED64, PARSE_FIELDS = 27 };
struct parse_field {
    const char *name;
    unsigned as;
};

struct message {
    const struct parse_field *fields; /* PARSE_FIELDS of them */
    const struct place *at;
    struct wire wire;
};

struct parse_counts {
    size_t of[PARSE_FIELDS]; /* how often each field occurs */
};

/* "model.onnx: graph.node[12]: <text>" */
tare_status parse_fail(const struct parse *p, const struct place *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
tare_status parse_nomem(const struct parse *p);

/* One level further in. Fails when that is deeper than any model is. */
tare_status parse_enter(const struct parse *p, struct place *inner, const struct place *at, const char *field,
                        int64_t index);

/* The next known field: 1; 0 at the end; a tare_status when damaged. */
int parse_next(const struct parse *p, struct message *m, struct wire_field *f);

/* Walk a whole message, so that what is wrong at its level is found, and lists can be made in one piece. */
tare_status parse_count(const struct parse *p, struct message m, struct parse_counts *counts);

/* A name: no NUL inside, valid UTF-8. */
tare_status parse_name(const struct parse *p, const struct place *at, const struct wire_field *f,
                       const char **out);
/* Text for people: what is not valid is replaced. */
tare_status parse_text(const struct parse *p, const struct wire_field *f, const char **out);

/* All numbers of a repeated int64 field, packed or not. */
tare_status parse_ints(const struct parse *p, struct message m, unsigned number, int64_t **items, size_t *n);

/* A list of n items in the model's memory. */
#define parse_list(p, list, count)                                                                  \
    __extension__({                                                                                 \
        size_t list_n_ = (count);                                                                   \
        (list)->items = list_n_ ? arena_new(&(p)->memory->arena, list_n_, sizeof *(list)->items) : NULL; \
        list_n_ && !(list)->items ? parse_nomem(p) : TARE_OK;                                       \
    })

static inline struct message message_of(const struct wire_field *f, const struct parse_field *fields,
                                        const struct place *at)
{
    return (struct message){fields, at, {f->bytes, f->bytes + f->n}};
}

/* The messages; f is the field that holds one, `at` its place. */
tare_status parse_graph(const struct parse *p, const struct place *at, const struct wire_field *f,
                        struct onnx_graph *g);
tare_status parse_node(const struct parse *p, const struct place *at, const struct wire_field *f,
                       struct onnx_node *n);
tare_status parse_attribute(const struct parse *p, const struct place *at, const struct wire_field *whole,
                            struct onnx_attribute *a);
tare_status parse_tensor(const struct parse *p, const struct place *at, const struct wire_field *f,
                         struct onnx_tensor *t);
tare_status parse_sparse(const struct parse *p, const struct place *at, const struct wire_field *f,
                         struct onnx_sparse *out);

/* Sets m->parameters and m->weight_type. */
tare_status onnx_weigh(struct onnx_model *m, tare_error *err);

#endif

/* SPDX-License-Identifier: MIT
 * onnx_parse.h - between the files of the ONNX reader: where in the model we are, what each message may hold,
 * and errors that name the place. Private to src/model/onnx*.c. */
#ifndef MODEL_ONNX_PARSE_H
#define MODEL_ONNX_PARSE_H

#include <stddef.h>

#include "core/file.h"
#include "core/map.h"
#include "core/vec.h"
#include "core/wire.h"
#include "model/onnx/onnx.h"

/* ---- external.c: weights kept in files beside a model, found below its folder and nowhere else, measured when the
 * model is opened, mapped when first asked for. Never writes, never follows "..". A symbolic link inside the folder is
 * followed, because download caches are made of them ---- */

struct external_file {
    uint64_t size;
    struct file_view view; /* empty until first asked for */
};

struct external {
    char *folder; /* of the model; NULL: it was read from memory */
    VEC(struct external_file) files;
    struct map_str by_location; /* number of the file + 1 */
};

tare_status external_init(struct external *e, const char *model_path, tare_error *err);
void external_release(struct external *e);

/* The file must be there and have offset + bytes. Without a folder only the name is checked. */
tare_status external_check(struct external *e, const char *location, uint64_t offset, uint64_t bytes,
                           tare_error *err);

/* Those bytes, mapped; valid until external_release(). */
tare_status external_bytes(struct external *e, const char *location, uint64_t offset, const uint8_t **out,
                           tare_error *err);

/* ---- the model ---- */

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

/* Reads one field into *out, as the field's row says what that is; `at` is its place. */
typedef tare_status parse_reader(const struct parse *p, const struct place *at, const struct wire_field *f,
                                 void *out);

/* What a message may hold: by field number, its name and the wire types it may come as (no name: skipped), who reads
 * it, and where to in the struct that the message becomes. */
enum { AS_VARINT = 1 << WIRE_VARINT, AS_BYTES = 1 << WIRE_BYTES, AS_FIXED32 = 1 << WIRE_FIXED32 };
enum { AS_FIXED64 = 1 << WIRE_FIXED64, PARSE_FIELDS = 27 };
struct parse_field {
    const char *name;
    unsigned as;
    parse_reader *read; /* NULL: checked, and not kept or read by other means */
    size_t at;          /* offset of the value, or of the ONNX_LIST of values */
    size_t size;        /* of an item of a list; 0: no list */
    bool inside;        /* a message: a place of its own */
    bool numbers;       /* a list of them: int64_t from varints, float from fixed ones; packed or not */
};
#define PARSE_ONE(type, member, reader) .read = reader, .at = offsetof(type, member)
#define PARSE_MESSAGE(type, member, reader) PARSE_ONE(type, member, reader), .inside = true
#define PARSE_NAMES(type, member) PARSE_ONE(type, member, parse_name), .size = sizeof(char *)
#define PARSE_NUMBERS(type, member) \
    .at = offsetof(type, member), .size = sizeof *((type *)NULL)->member.items, .numbers = true
#define PARSE_LIST(type, member, reader) \
    PARSE_MESSAGE(type, member, reader), .size = sizeof *((type *)NULL)->member.items

struct message {
    const struct parse_field *fields; /* PARSE_FIELDS of them */
    const struct place *at;
    struct wire wire;
};

struct parse_counts {
    size_t of[PARSE_FIELDS]; /* how often each field occurs; of `numbers`, how many there are */
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

/* The whole message into *out, by its rows; what they do not read is left as it is. Lists must be empty before.
 * `counts` may be NULL. */
tare_status parse_fields(const struct parse *p, struct message m, void *out, struct parse_counts *counts);

parse_reader parse_name;  /* const char *: no NUL inside, valid UTF-8 */
parse_reader parse_text;  /* const char *, for people: what is not valid is replaced */
parse_reader parse_int;   /* int64_t */
parse_reader parse_enum;  /* int; -1: larger than any */
parse_reader parse_bytes; /* an ONNX_LIST of bytes, in the mapping */

static inline struct message message_of(const struct wire_field *f, const struct parse_field *fields,
                                        const struct place *at)
{
    return (struct message){fields, at, {f->bytes, f->bytes + f->n}};
}

/* The messages: struct onnx_graph, onnx_node, onnx_attribute, onnx_tensor, onnx_sparse. */
parse_reader parse_graph, parse_node, parse_attribute, parse_tensor, parse_sparse;

/* Sets m->parameters and m->weight_type. */
tare_status onnx_weigh(struct onnx_model *m, tare_error *err);

#endif

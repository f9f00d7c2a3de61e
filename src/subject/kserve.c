/* SPDX-License-Identifier: MIT
 * kserve.c - see kserve.h. */
#include "subject/kserve.h"

#include <math.h>
#include <string.h>

#include "core/json.h"
#include "core/json_tree.h"

static const struct {
    const char *word;
    int type;
    bool in_json;
} words[] = {
    {"BOOL", ONNX_BOOL, true},     {"UINT8", ONNX_UINT8, true},    {"UINT16", ONNX_UINT16, true},
    {"UINT32", ONNX_UINT32, true}, {"UINT64", ONNX_UINT64, true},  {"INT8", ONNX_INT8, true},
    {"INT16", ONNX_INT16, true},   {"INT32", ONNX_INT32, true},    {"INT64", ONNX_INT64, true},
    {"FP16", ONNX_FLOAT16, false}, {"BF16", ONNX_BFLOAT16, false}, {"FP32", ONNX_FLOAT, true},
    {"FP64", ONNX_DOUBLE, true},
};
enum { N_WORDS = sizeof words / sizeof *words };

static size_t row_of_type(int type)
{
    size_t i = 0;
    while (i < N_WORDS && words[i].type != type) i++;
    return i;
}

/* ---- requests ---- */

static void put_value(struct json *j, const struct tensor *t, uint64_t i)
{
    if (t->type == ONNX_BOOL) {
        json_put_bool(j, tensor_value(t, i) != 0);
    } else if (t->type == ONNX_INT64) {
        json_put_int(j, ((const int64_t *)t->data)[i]); /* a double has too few digits */
    } else if (t->type == ONNX_UINT64) {
        json_put_uint(j, ((const uint64_t *)t->data)[i]);
    } else {
        json_put_double(j, tensor_value(t, i));
    }
}

static void put_input(struct json *j, const struct tensor *t, bool binary)
{
    json_object_begin(j);
    json_kv_string(j, "name", t->name);
    json_key(j, "shape");
    json_array_begin(j);
    for (size_t d = 0; d < t->rank; d++) json_put_int(j, t->dims[d]);
    json_array_end(j);
    json_kv_string(j, "datatype", words[row_of_type(t->type)].word);
    if (binary) {
        json_key(j, "parameters");
        json_object_begin(j);
        json_kv_uint(j, "binary_data_size", t->bytes);
        json_object_end(j);
    } else {
        json_key(j, "data");
        json_array_begin(j);
        for (uint64_t i = 0, n = tensor_elements(t); i < n; i++) put_value(j, t, i);
        json_array_end(j);
    }
    json_object_end(j);
}

static tare_status can_send(const struct tensor *t, bool binary, tare_error *err)
{
    size_t row = row_of_type(t->type);
    if (row == N_WORDS)
        return error_set(err, TARE_UNSUPPORTED, "input '%s': KServe has no word for %s", t->name,
                         onnx_type_name(t->type));
    if (!binary && !words[row].in_json)
        return error_set(err, TARE_UNSUPPORTED, "input '%s': JSON of KServe has no %s; send it in binary",
                         t->name, words[row].word);
    for (uint64_t i = 0, n = tensor_elements(t); !binary && tensor_is_float(t->type) && i < n; i++)
        if (!isfinite(tensor_value(t, i)))
            return error_set(err, TARE_UNSUPPORTED,
                             "input '%s': JSON has no NaN or infinity; send it in binary", t->name);
    return TARE_OK;
}

tare_status kserve_encode(const struct tensor_set *inputs, bool binary, struct buf *body, size_t *n_json,
                          tare_error *err)
{
    struct json j;
    size_t from = body->len;
    for (size_t i = 0; i < inputs->items.n; i++) {
        tare_status s = can_send(&inputs->items.items[i], binary, err);
        if (s < 0) return s;
    }
    json_init(&j, body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_key(&j, "inputs");
    json_array_begin(&j);
    for (size_t i = 0; i < inputs->items.n; i++) put_input(&j, &inputs->items.items[i], binary);
    json_array_end(&j);
    if (binary) {
        json_key(&j, "parameters");
        json_object_begin(&j);
        json_kv_bool(&j, "binary_data_output", true);
        json_object_end(&j);
    }
    json_object_end(&j);
    tare_status s = json_finish(&j, err);
    *n_json = binary ? body->len - from : 0;
    for (size_t i = 0; binary && i < inputs->items.n; i++)
        buf_add(body, inputs->items.items[i].data, inputs->items.items[i].bytes);
    return s < 0 ? s : buf_status(body, err);
}

/* ---- answers ---- */

static const struct json_node *member(const struct json_node *object, const char *key, enum tree_kind kind)
{
    const struct json_node *hint = NULL;
    const struct json_node *v =
        object && object->kind == TREE_OBJECT ? json_tree_get(object, key, &hint) : NULL;
    return v && v->kind == kind ? v : NULL;
}

static tare_status wrong(const char *name, const char *what, tare_error *err)
{
    return error_set(err, TARE_FORMAT, "output '%s': %s", name, what);
}

static tare_status shape_of(const struct json_node *output, struct tensor_spec *spec, int64_t dims[],
                            tare_error *err)
{
    const struct json_node *shape = member(output, "shape", TREE_ARRAY);
    if (!shape || shape->items.n > TENSOR_RANK_MAX)
        return wrong(spec->name, "no shape, or one of over 16 axes", err);
    for (const struct json_node *d = shape->items.first; d; d = d->next) {
        if (d->kind != TREE_INTEGER || d->i < 0)
            return wrong(spec->name, "its shape is not of whole numbers", err);
        dims[spec->rank++] = d->i;
    }
    return TARE_OK;
}

static bool set_value(struct tensor *t, uint64_t i, const struct json_node *v)
{
    if (v->kind == TREE_INTEGER && t->type == ONNX_INT64) {
        ((int64_t *)t->data)[i] = v->i;
        return true;
    }
    if (v->kind == TREE_INTEGER) return tensor_set_value(t, i, (double)v->i);
    if (v->kind == TREE_REAL) return tensor_set_value(t, i, v->d);
    if (v->kind == TREE_TRUE || v->kind == TREE_FALSE) return tensor_set_value(t, i, v->kind == TREE_TRUE);
    return v->kind == TREE_NULL && tensor_is_float(t->type) && tensor_set_value(t, i, NAN);
}

/* Flat, or lists within lists: in C order either way. False: something is no number, or there are too many. */
static bool fill(struct tensor *t, const struct json_node *list, unsigned depth, uint64_t *at)
{
    for (const struct json_node *v = list->items.first; v; v = v->next) {
        if (v->kind == TREE_ARRAY) {
            if (depth == TENSOR_RANK_MAX || !fill(t, v, depth + 1, at)) return false;
        } else if (*at == tensor_elements(t) || !set_value(t, (*at)++, v)) {
            return false;
        }
    }
    return true;
}

/* The bytes of outputs behind the JSON, in their order. */
struct tail {
    const char *at;
    size_t left, n_json; /* n_json: in JSON there are no more numbers than bytes */
};

/* TARE_OK and no name: left out. */
static tare_status read_output(const struct json_node *output, struct tail *tail, struct tensor *t,
                               tare_error *err)
{
    const struct json_node *name = member(output, "name", TREE_STRING),
                           *word = member(output, "datatype", TREE_STRING);
    const struct json_node *data = member(output, "data", TREE_ARRAY);
    const struct json_node *size =
        member(member(output, "parameters", TREE_OBJECT), "binary_data_size", TREE_INTEGER);
    if (!name || !word) return error_set(err, TARE_FORMAT, "an output without a name or a datatype");
    struct tensor_spec spec = {.name = name->s};
    int64_t dims[TENSOR_RANK_MAX];
    size_t row = 0, bytes = 0;
    uint64_t elements = 0;
    const char *from = tail->at;
    if (size && (size->i < 0 || (uint64_t)size->i > tail->left))
        return wrong(name->s, "more bytes announced than came", err);
    if (size) {
        tail->at += size->i;
        tail->left -= (size_t)size->i;
    }
    if (strcmp(word->s, "BYTES") == 0) return TARE_OK;
    while (row < N_WORDS && strcmp(words[row].word, word->s) != 0) row++;
    if (row == N_WORDS) return wrong(name->s, "its datatype is none of KServe", err);
    tare_status s = shape_of(output, &spec, dims, err);
    if (s < 0) return s;
    spec.dims = dims;
    spec.type = words[row].type;
    if (!tensor_bytes(spec.type, dims, spec.rank, &elements, &bytes))
        return wrong(name->s, "its shape is too large", err);
    if (size ? (uint64_t)size->i != bytes : !data)
        return wrong(name->s, size ? "its bytes are not those of its shape" : "no data", err);
    if (!size && elements > tail->n_json) return wrong(name->s, "its shape is too large", err);
    if ((s = tensor_make(t, &spec, err)) < 0) return s;
    if (size) {
        memcpy(t->data, from, bytes);
        return TARE_OK;
    }
    uint64_t at = 0;
    if (!fill(t, data, 1, &at) || at != elements) {
        tensor_release(t);
        return wrong(name->s, "its data are not the numbers of its shape", err);
    }
    return TARE_OK;
}

static tare_status read_outputs(const struct json_node *list, struct tail *tail, struct tensor_set *out,
                                tare_error *err)
{
    for (const struct json_node *o = list->items.first; o; o = o->next) {
        struct tensor t = {0};
        tare_status s = read_output(o, tail, &t, err);
        if (s == TARE_OK && t.name) s = tensor_set_take(out, &t, err);
        if (s < 0) return s;
    }
    if (tail->left)
        return error_set(err, TARE_FORMAT, "%zu bytes more than its outputs announce", tail->left);
    return TARE_OK;
}

tare_status kserve_decode(const struct kserve_answer *answer, struct tensor_set *out, tare_error *err)
{
    struct arena memory = ARENA_INIT;
    const struct json_node *root = NULL, *list = NULL, *said = NULL;
    size_t n_json = answer->n_json ? answer->n_json : answer->n;
    if (n_json > answer->n)
        return error_set(err, TARE_FORMAT, "its JSON is cut short: %zu of %zu bytes", answer->n, n_json);
    tare_status s = json_tree_read((struct json_room){&memory, &memory}, answer->body, n_json, &root);
    if (s == TARE_NOMEM) {
        error_nomem(err, "an answer of %zu bytes", answer->n);
    } else if (s < 0) {
        s = error_set(err, TARE_FORMAT, "what came is no JSON");
    } else if ((said = member(root, "error", TREE_STRING))) {
        s = error_set(err, TARE_FORMAT, "the server says: %.200s", said->s);
    } else if (!(list = member(root, "outputs", TREE_ARRAY))) {
        s = error_set(err, TARE_FORMAT, "it has no outputs");
    } else {
        struct tail tail = {answer->body + n_json, answer->n - n_json, n_json};
        s = read_outputs(list, &tail, out, err);
    }
    arena_release(&memory);
    return s;
}

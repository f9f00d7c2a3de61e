/* SPDX-License-Identifier: MIT
 * onnx.c - see onnx.h: open, the model's own fields, functions, and what files that are no models look
 * like. */
#include "model/onnx/onnx.h"

#include <string.h>
#include <sys/mman.h>

#include "core/looks.h"
#include "core/mem.h"
#include "core/str.h"
#include "model/onnx/onnx_parse.h"

/* ---- the parts of a model ---- */

static tare_status parse_opset(const struct parse *p, const struct place *at, const struct wire_field *f,
                               void *out)
{
    static const struct parse_field fields[PARSE_FIELDS] = {
        [1] = {"domain", AS_BYTES, PARSE_ONE(struct onnx_opset, domain, parse_name)},
        [2] = {"version", AS_VARINT, PARSE_ONE(struct onnx_opset, version, parse_int)},
    };
    struct onnx_opset *o = out;
    *o = (struct onnx_opset){"", 0};
    tare_status s = parse_fields(p, message_of(f, fields, at), o, NULL);
    if (s == TARE_OK && strcmp(o->domain, "ai.onnx") == 0) o->domain = "";
    return s;
}

static tare_status parse_property(const struct parse *p, const struct place *at, const struct wire_field *f,
                                  void *out)
{
    static const struct parse_field fields[PARSE_FIELDS] = {
        [1] = {"key", AS_BYTES, PARSE_ONE(struct onnx_property, key, parse_text)},
        [2] = {"value", AS_BYTES, PARSE_ONE(struct onnx_property, value, parse_text)},
    };
    *(struct onnx_property *)out = (struct onnx_property){"", ""};
    return parse_fields(p, message_of(f, fields, at), out, NULL);
}

static tare_status parse_function(const struct parse *p, const struct place *at, const struct wire_field *f,
                                  void *out)
{
    static const struct parse_field fields[PARSE_FIELDS] = {
        [1] = {"name", AS_BYTES, PARSE_ONE(struct onnx_function, name, parse_name)},
        [4] = {"input", AS_BYTES, PARSE_NAMES(struct onnx_function, inputs)},
        [5] = {"output", AS_BYTES, PARSE_NAMES(struct onnx_function, outputs)},
        [6] = {"attribute", AS_BYTES, PARSE_NAMES(struct onnx_function, attributes)},
        [7] = {"node", AS_BYTES, PARSE_LIST(struct onnx_function, nodes, parse_node)},
        [9] = {"opset_import", AS_BYTES, PARSE_LIST(struct onnx_function, opsets, parse_opset)},
        [10] = {"domain", AS_BYTES, PARSE_ONE(struct onnx_function, domain, parse_name)},
        [11] = {"attribute_proto", AS_BYTES, PARSE_LIST(struct onnx_function, defaults, parse_attribute)},
        [13] = {"overload", AS_BYTES, PARSE_ONE(struct onnx_function, overload, parse_name)},
    };
    struct onnx_function *made = out;
    *made = (struct onnx_function){.name = "", .domain = "", .overload = ""};
    tare_status s = parse_fields(p, message_of(f, fields, at), made, NULL);
    if (s < 0) return s;
    return made->name[0] ? TARE_OK : parse_fail(p, at, "a function without a name");
}

enum { M_IR = 1, M_GRAPH = 7 };

static const struct parse_field model_fields[PARSE_FIELDS] = {
    [M_IR] = {"ir_version", AS_VARINT, PARSE_ONE(struct onnx_model, ir_version, parse_int)},
    [2] = {"producer_name", AS_BYTES, PARSE_ONE(struct onnx_model, producer, parse_text)},
    [3] = {"producer_version", AS_BYTES, PARSE_ONE(struct onnx_model, producer_version, parse_text)},
    [4] = {"domain", AS_BYTES, PARSE_ONE(struct onnx_model, domain, parse_text)},
    [5] = {"model_version", AS_VARINT, PARSE_ONE(struct onnx_model, version, parse_int)},
    [6] = {.name = "doc_string", .as = AS_BYTES},
    [M_GRAPH] = {"graph", AS_BYTES, PARSE_MESSAGE(struct onnx_model, graph, parse_graph)},
    [8] = {"opset_import", AS_BYTES, PARSE_LIST(struct onnx_model, opsets, parse_opset)},
    [14] = {"metadata_props", AS_BYTES, PARSE_LIST(struct onnx_model, metadata, parse_property)},
    [20] = {.name = "training_info", .as = AS_BYTES},
    [25] = {"functions", AS_BYTES, PARSE_LIST(struct onnx_model, functions, parse_function)},
};

static tare_status parse_model(const struct parse *p, const uint8_t *bytes, size_t n, struct onnx_model *m)
{
    struct wire_field whole = {.bytes = bytes, .n = n};
    struct parse_counts counts;
    tare_status s = parse_count(p, message_of(&whole, model_fields, NULL), &counts);
    if (s < 0) return s;
    if (counts.of[M_GRAPH] != 1)
        return parse_fail(p, NULL, "%s", counts.of[M_GRAPH] ? "has two graphs" : "has no graph");
    if (!counts.of[M_IR]) return parse_fail(p, NULL, "has no ir_version");
    s = parse_fields(p, message_of(&whole, model_fields, NULL), m, NULL);
    return s < 0 ? s : onnx_weigh(m, p->err);
}

/* ---- open and close ---- */

void onnx_close(struct onnx_model *m)
{
    if (m->memory) {
        map_str_release(&m->memory->strings);
        arena_release(&m->memory->arena);
        external_release(&m->memory->external);
        file_unmap(&m->memory->view);
        mem_free(m->memory);
    }
    mem_free(m->path);
    *m = (struct onnx_model)ONNX_MODEL_INIT;
}

static tare_status begin_model(struct onnx_model *m, const char *path, const char *folder_of, tare_error *err)
{
    *m = (struct onnx_model){.producer = "", .producer_version = "", .domain = "", .graph = {.name = ""}};
    m->path = mem_strdup(path);
    m->memory = m->path ? mem_new(1, sizeof *m->memory) : NULL;
    if (!m->memory) return error_set(err, TARE_NOMEM, "%s: out of memory", path);
    m->memory->strings.memory = &m->memory->arena;
    return external_init(&m->memory->external, folder_of, err);
}

static tare_status read_bytes(struct onnx_model *m, const void *bytes, size_t n, tare_error *err)
{
    struct parse p = {m->path, bytes, m->memory, err};
    m->file_bytes = n;
    if (n == 0) return error_set(err, TARE_FORMAT, "%s: the file is empty", m->path);
    tare_status s = parse_model(&p, bytes, n, m);
    const char *other = s == TARE_FORMAT ? looks_like(bytes, n, LOOKS_MODEL) : NULL;
    return other ? error_set(err, TARE_FORMAT, "%s: is not an ONNX model: %s", m->path, other) : s;
}

static tare_status finish_model(struct onnx_model *out, struct onnx_model *m, tare_status s)
{
    if (s == TARE_OK)
        *out = *m;
    else
        onnx_close(m);
    return s;
}

/* Only what lies between the weights is read: reading ahead would fetch weights that nobody looks at. */
static void skip_weights(const struct file_view *v)
{
    enum { SMALL = 1 << 22 }; /* a file of a few MB is read in one go */
    if (v->size > SMALL) (void)posix_madvise((void *)(uintptr_t)v->data, v->size, POSIX_MADV_RANDOM);
}

tare_status onnx_open(struct onnx_model *out, const char *path, tare_error *err)
{
    struct onnx_model m;
    tare_status s = begin_model(&m, path, path, err);
    if (s == TARE_OK) s = file_map(path, &m.memory->view, err);
    if (s == TARE_OK) skip_weights(&m.memory->view);
    if (s == TARE_OK) s = read_bytes(&m, m.memory->view.data, m.memory->view.size, err);
    return finish_model(out, &m, s);
}

tare_status onnx_read(struct onnx_model *out, const char *name, const void *bytes, size_t n, tare_error *err)
{
    struct onnx_model m;
    tare_status s = begin_model(&m, name, NULL, err);
    if (s == TARE_OK) s = read_bytes(&m, bytes, n, err);
    return finish_model(out, &m, s);
}

const char *onnx_own_name(const struct onnx_model *m, const char *name)
{
    return map_str_find_key(&m->memory->strings, name, strlen(name));
}

const char *onnx_keep_text(const struct onnx_model *m, const void *bytes, size_t n)
{
    return map_str_intern(&m->memory->strings, bytes, n);
}

tare_status onnx_read_tensor(struct onnx_model *out, const char *name, const void *bytes, size_t n,
                             tare_error *err)
{
    struct onnx_model m;
    struct wire_field whole = {.type = WIRE_BYTES, .bytes = bytes, .n = n};
    tare_status s = begin_model(&m, name, NULL, err);
    if (s == TARE_OK) {
        struct parse p = {m.path, bytes, m.memory, err};
        m.graph.initializers.items = arena_new(&m.memory->arena, 1, sizeof *m.graph.initializers.items);
        m.graph.initializers.n = 1;
        s = m.graph.initializers.items ? parse_tensor(&p, NULL, &whole, m.graph.initializers.items)
                                       : parse_nomem(&p);
    }
    return finish_model(out, &m, s);
}

int64_t onnx_opset(const struct onnx_model *m, const char *domain)
{
    for (size_t i = 0; i < m->opsets.n; i++) {
        if (strcmp(m->opsets.items[i].domain, domain) == 0) return m->opsets.items[i].version;
    }
    return 0;
}

/* SPDX-License-Identifier: MIT
 * onnx.c - see onnx.h: open, the model's own fields, functions, and what files that are no models look
 * like. */
#include "model/onnx/onnx.h"

#include <string.h>
#include <sys/mman.h>

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

/* ---- what else it may be ---- */

struct lookalike {
    size_t at;
    const char *magic;
    const char *what;
};

static const struct lookalike lookalikes[] = {
    {0, "version https://git-lfs", "looks like a Git LFS pointer: fetch the real file (git lfs pull)"},
    {0, "PK\003\004", "looks like a zip archive (PyTorch?): export the model to ONNX"},
    {0, "\200\002", "looks like a Python pickle (PyTorch?): export the model to ONNX"},
    {0, "\200\004\225", "looks like a Python pickle: export the model to ONNX"},
    {4, "ORTM", "looks like a model in ORT format, not ONNX"},
    {4, "TFL3", "looks like a TensorFlow Lite model"},
    {0, "GGUF", "looks like a GGUF file"},
    {0, "\211HDF", "looks like an HDF5 file (Keras?)"},
    {0, "\037\213", "looks like a gzip file: unpack it"},
    {0, "\050\265\057\375", "looks like a zstd file: unpack it"},
    {0, "BZh", "looks like a bzip2 file: unpack it"},
    {0, "\177ELF", "looks like a program or library"},
    {0, "\223NUMPY", "looks like a NumPy array"},
    {8, "{\"", "looks like a safetensors file: weights without a graph"},
};

/* Text has no bytes below space but white ones; a model has some in its first few fields. */
static const char *text_kind(const uint8_t *bytes, size_t n)
{
    size_t first = 0, look = n < 256 ? n : 256;
    for (size_t i = 0; i < look; i++) {
        if (bytes[i] < 32 && !strchr("\t\n\r\f", bytes[i])) return NULL;
        if (bytes[i] == 0) return NULL;
    }
    size_t whole = look; /* not cut inside a character */
    while (whole && look - whole < 4 && bytes[whole - 1] >= 0x80) whole--;
    if (!str_is_utf8((const char *)bytes, whole)) return NULL;
    if (n >= 3 && memcmp(bytes, "\357\273\277", 3) == 0) first = 3;
    while (first < look && strchr(" \t\r\n", bytes[first])) first++;
    if (first == look) return "looks like text";
    if (bytes[first] == '<') return "looks like a web page (HTML) or XML: was the download an error page?";
    if (bytes[first] == '{' || bytes[first] == '[') return "looks like JSON";
    return "looks like text";
}

static const char *lookalike(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < sizeof lookalikes / sizeof *lookalikes; i++) {
        const struct lookalike *l = &lookalikes[i];
        size_t len = strlen(l->magic);
        if (n >= l->at + len && memcmp(bytes + l->at, l->magic, len) == 0) return l->what;
    }
    return text_kind(bytes, n);
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
    const char *other = s == TARE_FORMAT ? lookalike(bytes, n) : NULL;
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

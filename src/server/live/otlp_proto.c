/* SPDX-License-Identifier: MIT
 * otlp_proto.c - OTLP metrics in protobuf, as the tree that their JSON would be: what is kept and what is counted is
 * decided in one place, otlp.c. Fields that nobody asks for are passed over, as protobuf has it. */
#include <math.h>
#include <string.h>

#include "core/str.h"
#include "core/wire.h"
#include "server/live/otlp_tree.h"

enum form { TEXT, UNSIGNED, SIGNED, TIMES, BOOLEAN, REAL, ONE, MANY };

/* A field of a message: its number, and the member of the JSON form. */
struct row {
    uint32_t number;
    enum form form;
    const char *key;
    const struct row *of; /* ONE, MANY: what it is made of; the last row has number 0 */
};

static const struct row any_value[] = {{1, TEXT, "stringValue", NULL},
                                       {2, BOOLEAN, "boolValue", NULL},
                                       {3, SIGNED, "intValue", NULL},
                                       {4, REAL, "doubleValue", NULL},
                                       {0}};
static const struct row key_value[] = {{1, TEXT, "key", NULL}, {2, ONE, "value", any_value}, {0}};
static const struct row number_point[] = {
    {3, TIMES, "timeUnixNano", NULL},   {4, REAL, "asDouble", NULL},  {6, TIMES, "asInt", NULL},
    {7, MANY, "attributes", key_value}, {8, UNSIGNED, "flags", NULL}, {0}};
static const struct row nothing[] = {{0}};
static const struct row gauge[] = {{1, MANY, "dataPoints", number_point}, {0}};
static const struct row sum[] = {{1, MANY, "dataPoints", number_point},
                                 {2, UNSIGNED, "aggregationTemporality", NULL},
                                 {3, BOOLEAN, "isMonotonic", NULL},
                                 {0}};
static const struct row counted[] = {{1, MANY, "dataPoints", nothing}, {0}};
static const struct row metric[] = {
    {1, TEXT, "name", NULL},        {3, TEXT, "unit", NULL},
    {5, ONE, "gauge", gauge},       {7, ONE, "sum", sum},
    {9, ONE, "histogram", counted}, {10, ONE, "exponentialHistogram", counted},
    {11, ONE, "summary", counted},  {0}};
static const struct row scope_metrics[] = {{2, MANY, "metrics", metric}, {0}};
static const struct row resource[] = {{1, MANY, "attributes", key_value}, {0}};
static const struct row resource_metrics[] = {
    {1, ONE, "resource", resource}, {2, MANY, "scopeMetrics", scope_metrics}, {0}};
static const struct row request[] = {{1, MANY, "resourceMetrics", resource_metrics}, {0}};

static tare_status read_message(const struct row *rows, struct wire w, json_t **out, tare_error *err);

static const struct row *find(const struct row *rows, uint32_t number)
{
    for (; rows->number; rows++)
        if (rows->number == number) return rows;
    return NULL;
}

static enum wire_type type_of(enum form form)
{
    if (form == TIMES || form == REAL) return WIRE_FIXED64;
    return form == UNSIGNED || form == SIGNED || form == BOOLEAN ? WIRE_VARINT : WIRE_BYTES;
}

/* NULL: no memory. A number that JSON has not is null, as if it were not there. */
static json_t *scalar_of(const struct row *r, const struct wire_field *f)
{
    double d;
    switch (r->form) {
    case TEXT: return json_stringn((const char *)f->bytes, f->n);
    case BOOLEAN: return json_boolean(f->value != 0);
    case REAL:
        memcpy(&d, &f->value, sizeof d);
        return isfinite(d) ? json_real(d) : json_null();
    default: return json_integer((json_int_t)f->value);
    }
}

static tare_status put(json_t *to, const struct row *r, json_t *v, tare_error *err)
{
    json_t *list = json_object_get(to, r->key);
    int rc;
    if (r->form == MANY && !list && json_object_set_new(to, r->key, json_array()) == 0)
        list = json_object_get(to, r->key);
    rc = r->form == MANY ? json_array_append_new(list, v) : json_object_set_new(to, r->key, v);
    return rc == 0 ? TARE_OK : error_nomem(err, "the request");
}

static tare_status read_field(const struct row *r, const struct wire_field *f, json_t *to, tare_error *err)
{
    json_t *v = NULL;
    tare_status s = TARE_OK;
    if (f->type != type_of(r->form))
        return error_set(err, TARE_FORMAT, "the request: %s: field %u is of another type", r->key, r->number);
    if (r->form == TEXT && (memchr(f->bytes, 0, f->n) || !str_is_utf8((const char *)f->bytes, f->n)))
        return error_set(err, TARE_FORMAT, "the request: %s: is no text in UTF-8", r->key);
    if (r->of)
        s = read_message(r->of, (struct wire){f->bytes, f->bytes + f->n}, &v, err);
    else if (!(v = scalar_of(r, f)))
        s = error_nomem(err, "the request");
    return s == TARE_OK ? put(to, r, v, err) : s;
}

/* As deep as the rows are: what is in a field that no row names is not looked at. */
static tare_status read_message(const struct row *rows, struct wire w, json_t **out, tare_error *err)
{
    json_t *to = json_object();
    const char *why = NULL;
    struct wire_field f;
    int got = 0;
    tare_status s = to ? TARE_OK : error_nomem(err, "the request");
    while (s == TARE_OK && (got = wire_next(&w, &f, &why)) > 0) {
        const struct row *r = find(rows, f.number);
        if (r) s = read_field(r, &f, to, err);
    }
    if (s == TARE_OK && got < 0) s = error_set(err, TARE_FORMAT, "the request is no protobuf: %s", why);
    if (s == TARE_OK)
        *out = to;
    else
        json_decref(to);
    return s;
}

tare_status otlp_read_proto(struct otlp *o, const void *bytes, size_t n, tare_error *err)
{
    const uint8_t *at = n ? bytes : (const uint8_t *)"";
    json_t *root = NULL;
    tare_status s = read_message(request, (struct wire){at, at + n}, &root, err);
    if (s == TARE_OK) s = otlp_take(o, json_object_get(root, "resourceMetrics"), err);
    json_decref(root);
    return s;
}

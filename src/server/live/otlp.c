/* SPDX-License-Identifier: MIT
 * otlp.c - OTLP metrics as readings: gauges and cumulative sums. Members may be in any order, so the document is read
 * whole; what is not kept is counted with the reason of the first. otlp_proto.c makes the same tree of protobuf. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/mem.h"
#include "server/live/otlp_tree.h"

enum { ATTRIBUTES_MAX = 32, FACT_MAX = 1024 };

static void reject(struct otlp *o, uint64_t n, const char *why)
{
    if (!o->rejected && n) snprintf(o->why, sizeof o->why, "%.199s", why);
    o->rejected += n;
}

/* ---- attributes ---- */

struct attribute {
    const char *key;
    const json_t *value; /* a scalar */
};

/* {"stringValue": ..} and the like; NULL: none that has one value. Whole numbers are texts in this JSON. */
static const json_t *scalar_of(const json_t *any)
{
    static const char *const kinds[] = {"stringValue", "intValue", "doubleValue", "boolValue"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const json_t *v = json_object_get(any, kinds[i]);
        if (json_is_string(v) || json_is_number(v) || json_is_boolean(v)) return v;
    }
    return NULL;
}

static size_t read_attributes(const json_t *list, struct attribute out[ATTRIBUTES_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(list) && n < ATTRIBUTES_MAX; i++) {
        const json_t *one = json_array_get(list, i);
        struct attribute a = {json_string_value(json_object_get(one, "key")),
                              scalar_of(json_object_get(one, "value"))};
        if (a.key && a.value) out[n++] = a;
    }
    return n;
}

static void add_scalar(struct buf *out, const json_t *v)
{
    if (json_is_string(v))
        buf_add_str(out, json_string_value(v));
    else if (json_is_integer(v))
        buf_printf(out, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        buf_printf(out, "%.17g", json_real_value(v));
    else
        buf_add_str(out, json_is_true(v) ? "true" : "false");
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct attribute *)a)->key, ((const struct attribute *)b)->key);
}

/* "cpu=0,state=idle", whatever their order was: what tells series apart. */
static void label_of(const json_t *attributes, const char *service, struct buf *out)
{
    struct attribute at[ATTRIBUTES_MAX];
    size_t n = read_attributes(attributes, at);
    buf_clear(out);
    if (n) qsort(at, n, sizeof *at, by_key);
    if (service) buf_printf(out, "service.name=%s", service);
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%s%s=", out->len ? "," : "", at[i].key);
        add_scalar(out, at[i].value);
    }
}

/* ---- resources ---- */

static const char *text_of(const struct attribute *at, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(at[i].key, key) == 0) return json_string_value(at[i].value);
    return NULL;
}

/* What the sender says of itself, as far as it is short. */
static const char *about_of(struct otlp *o, const struct attribute *at, size_t n)
{
    struct buf text = BUF_INIT, one = BUF_INIT;
    struct json j;
    json_init(&j, &text, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    for (size_t i = 0; i < n; i++) {
        buf_clear(&one);
        add_scalar(&one, at[i].value);
        if (readings_text_ok(at[i].key, FACT_MAX) && readings_text_ok(one.data, FACT_MAX))
            json_kv_string(&j, at[i].key, one.data);
    }
    json_object_end(&j);
    const char *about = text.failed ? NULL : arena_str(&o->arena, text.data);
    buf_release(&text);
    buf_release(&one);
    return about;
}

static struct readings *readings_of(struct otlp *o, const char *host, tare_error *err)
{
    for (size_t i = 0; i < o->hosts.at.n; i++)
        if (strcmp(o->hosts.at.items[i]->host, host) == 0) return o->hosts.at.items[i];
    struct readings *r = arena_new(&o->arena, 1, sizeof *r);
    if (!r) {
        error_nomem(err, "a host");
        return NULL;
    }
    readings_init(r, &o->arena);
    r->host = arena_str(&o->arena, host);
    if (!r->host || vec_push(&o->hosts.at, r, err) != TARE_OK) return NULL;
    return r;
}

/* ---- data points ---- */

struct point_of { /* what its points share */
    struct otlp *o;
    struct readings *r; /* NULL: of no host */
    const char *service;
    struct store_metric m;
    const char *why_not; /* NULL: they are kept */
    struct buf label;
};

/* A whole number, which this JSON writes as a text, or a number. */
static bool whole(const json_t *v, int64_t *out)
{
    const char *text = json_string_value(v);
    char *end = NULL;
    if (json_is_integer(v)) *out = json_integer_value(v);
    if (json_is_integer(v)) return true;
    if (!text || !*text) return false;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return !*end && !errno;
}

static bool number(const json_t *point, double *out)
{
    const json_t *real = json_object_get(point, "asDouble");
    int64_t n;
    if (json_is_number(real)) *out = json_number_value(real);
    if (json_is_number(real)) return true;
    if (!whole(json_object_get(point, "asInt"), &n)) return false;
    *out = (double)n;
    return true;
}

/* TARE_NOMEM alone is a failure: all else is a point that is not kept. */
static tare_status take_point(struct point_of *p, const json_t *point, tare_error *err)
{
    tare_error why = TARE_ERROR_INIT;
    int64_t ns = 0, flags = 0;
    double value = 0;
    whole(json_object_get(point, "flags"), &flags);
    if (flags & 1) return TARE_OK; /* says that there is no value: a gap */
    if (!whole(json_object_get(point, "timeUnixNano"), &ns) || ns <= 0 || !number(point, &value)) {
        reject(p->o, 1, "a data point without timeUnixNano or without a number");
        return TARE_OK;
    }
    label_of(json_object_get(point, "attributes"), p->service, &p->label);
    if (p->label.failed) return error_nomem(err, "a label");
    p->m.label = p->label.data;
    tare_status s = readings_add(p->r, &p->m, ns / 1000000, value, &why);
    if (s == TARE_NOMEM) return error_nomem(err, "a data point");
    if (s != TARE_OK) reject(p->o, 1, why.text);
    return TARE_OK;
}

/* Which of its kinds a metric is, and its points. */
static const json_t *points_of(const json_t *metric, struct point_of *p)
{
    static const char *const others[] = {"histogram", "exponentialHistogram", "summary"};
    const json_t *gauge = json_object_get(metric, "gauge"), *sum = json_object_get(metric, "sum");
    const json_t *kind = json_object_get(sum, "aggregationTemporality");
    const char *word = json_string_value(kind);
    bool cumulative =
        json_integer_value(kind) == 2 || (word && strcmp(word, "AGGREGATION_TEMPORALITY_CUMULATIVE") == 0);
    if (gauge) return json_object_get(gauge, "dataPoints");
    if (sum && !cumulative) p->why_not = "sums that are not cumulative are not kept";
    p->m.counter = json_is_true(json_object_get(sum, "isMonotonic"));
    if (sum) return json_object_get(sum, "dataPoints");
    p->why_not = "only gauges and sums are kept";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const json_t *other = json_object_get(metric, others[i]);
        if (other) return json_object_get(other, "dataPoints");
    }
    return NULL;
}

static tare_status take_metric(struct point_of *p, const json_t *metric, tare_error *err)
{
    const char *name = json_string_value(json_object_get(metric, "name"));
    const char *unit = json_string_value(json_object_get(metric, "unit"));
    tare_status s = TARE_OK;
    p->why_not = p->r ? NULL : "a resource without host.name or service.name that can be a host's name";
    p->m = (struct store_metric){.name = name ? name : "", .unit = unit && *unit ? unit : NULL};
    const json_t *points = points_of(metric, p);
    if (p->why_not) {
        reject(p->o, json_array_size(points), p->why_not);
        return TARE_OK;
    }
    for (size_t i = 0; i < json_array_size(points) && s == TARE_OK; i++)
        s = take_point(p, json_array_get(points, i), err);
    return s;
}

static tare_status take_resource(struct otlp *o, const json_t *resource, tare_error *err)
{
    struct attribute at[ATTRIBUTES_MAX];
    size_t n = read_attributes(json_object_get(json_object_get(resource, "resource"), "attributes"), at);
    const char *name = text_of(at, n, "host.name"), *service = text_of(at, n, "service.name");
    struct point_of p = {.o = o, .service = name ? service : NULL, .label = BUF_INIT};
    const json_t *scopes = json_object_get(resource, "scopeMetrics");
    tare_status s = TARE_OK;
    if (!name) name = service;
    if (name && store_name_ok(name)) {
        p.r = readings_of(o, name, err);
        if (!p.r) return TARE_NOMEM;
        if (!p.r->about) p.r->about = about_of(o, at, n);
    }
    for (size_t i = 0; i < json_array_size(scopes); i++) {
        const json_t *metrics = json_object_get(json_array_get(scopes, i), "metrics");
        for (size_t k = 0; k < json_array_size(metrics) && s == TARE_OK; k++)
            s = take_metric(&p, json_array_get(metrics, k), err);
    }
    buf_release(&p.label);
    return s;
}

tare_status otlp_take(struct otlp *o, const json_t *resources, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; i < json_array_size(resources) && s == TARE_OK; i++)
        s = take_resource(o, json_array_get(resources, i), err);
    return s;
}

tare_status otlp_read_json(struct otlp *o, const char *bytes, size_t n, tare_error *err)
{
    json_error_t e;
    tare_status s;
    errno = 0; /* jansson takes a refused allocation for a syntax error of the text, at some places */
    json_t *root = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &e);
    const json_t *resources = json_object_get(root, "resourceMetrics");
    if (!root && errno == ENOMEM)
        s = error_nomem(err, "the request");
    else if (!root)
        s = error_set(err, TARE_FORMAT, "the request: line %d, byte %d: %.150s", e.line, e.position, e.text);
    else if (!json_is_array(resources))
        s = error_set(err, TARE_FORMAT, "the request: resourceMetrics: must be a list");
    else
        s = otlp_take(o, resources, err);
    json_decref(root);
    return s;
}

void otlp_close(struct otlp *o, int64_t now_ms)
{
    size_t kept = 0;
    for (size_t i = 0; i < o->hosts.at.n; i++) {
        struct readings *r = o->hosts.at.items[i];
        tare_error why = TARE_ERROR_INIT;
        bool good = r->at.n && readings_close(r, now_ms, &why) == TARE_OK;
        if (good)
            o->hosts.at.items[kept++] = r;
        else
            reject(o, r->at.n, why.text);
        if (!good) readings_release(r);
    }
    o->hosts.at.n = kept;
}

void otlp_release(struct otlp *o)
{
    for (size_t i = 0; i < o->hosts.at.n; i++) readings_release(o->hosts.at.items[i]);
    vec_release(&o->hosts.at);
    arena_release(&o->arena);
}

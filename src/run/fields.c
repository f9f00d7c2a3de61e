/* SPDX-License-Identifier: MIT
 * fields.c - see fields.h: the rows of all documents, from their lists, and the rules that rows name. */
#include "run/fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "run/comparison.h"
#include "run/gpu_profile.h"
#include "run/requests.h"
#include "run/run.h"

/* ---- paths ---- */

/* Appends p after what it is in; returns the depth of p, the document being 0. */
static size_t append(const struct path *p, size_t skip, char *out, size_t size)
{
    if (!p->up) return 0;
    size_t depth = append(p->up, skip, out, size) + 1;
    size_t used = strlen(out);
    if (depth <= skip) return depth;
    if (p->key) {
        snprintf(out + used, size - used, used ? ".%s" : "%s", p->key);
    } else {
        snprintf(out + used, size - used, "[%zu]", p->index);
    }
    return depth;
}

char *path_text_below(const struct path *p, size_t skip, char *out, size_t size)
{
    out[0] = 0;
    append(p, skip, out, size);
    return out;
}

size_t path_depth(const struct path *p)
{
    size_t n = 0;
    for (; p->up; p = p->up) n++;
    return n;
}

char *path_text(const struct path *p, char *out, size_t size)
{
    return path_text_below(p, 0, out, size);
}

/* ---- rules for strings ---- */

static bool only(const char *s, const char *set, size_t min, size_t max)
{
    size_t n = strspn(s, set);
    return s[n] == 0 && n >= min && n <= max;
}

static bool is_ulid(const char *s)
{
    return s[0] >= '0' && s[0] <= '7' && only(s, "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 26, 26);
}

static bool is_word(const char *s)
{
    return s[0] >= 'a' && s[0] <= 'z' && only(s, "abcdefghijklmnopqrstuvwxyz0123456789-", 1, 32);
}

static bool is_sha256(const char *s)
{
    return only(s, "0123456789abcdef", 64, 64);
}

/* The two digits at s, or -1. */
static int two(const char *s)
{
    return strspn(s, "0123456789") >= 2 ? (s[0] - '0') * 10 + s[1] - '0' : -1;
}

static bool is_utc(const char *s)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:dd.dddZ";
    for (size_t i = 0; i < sizeof shape; i++) {
        bool digit = s[i] >= '0' && s[i] <= '9';
        if (shape[i] == 'd' ? !digit : s[i] != shape[i]) return false;
    }
    return two(s + 5) >= 1 && two(s + 5) <= 12 && two(s + 8) >= 1 && two(s + 8) <= 31 && two(s + 11) <= 23 &&
           two(s + 14) <= 59 && two(s + 17) <= 60;
}

static bool is_service(const char *s)
{
    return only(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", 1, 40);
}

static bool is_line(const char *s)
{
    size_t n = 0;
    while ((unsigned char)s[n] >= 0x20 && s[n] != 0x7f && n <= 200) n++;
    return s[n] == 0 && n >= 1 && n <= 200;
}

static bool is_any(const char *s)
{
    (void)s;
    return true;
}

static bool is_filled(const char *s)
{
    return s[0] != 0;
}

static bool is_file_name(const char *s)
{
    return s[0] != 0 && !strchr(s, '/') && strcmp(s, ".") != 0 && strcmp(s, "..") != 0;
}

bool field_text_ok(const struct run_rule *rule, const char *s)
{
    if (!rule->words) return rule->ok(s);
    for (const char *const *word = rule->words; *word; word++)
        if (strcmp(*word, s) == 0) return true;
    return false;
}

/* ---- rules for numbers, keys and whole structs ---- */

const char *field_number_fault(const struct run_field *f, double v)
{
    if (!isfinite(v)) return "not a finite number";
    if ((f->flags & (FIELD_POSITIVE | FIELD_SHARE | FIELD_WHOLE)) && v < 0) return "must not be negative";
    if ((f->flags & FIELD_SHARE) && v > 1) return "a share must not be above 1";
    return NULL;
}

bool field_key_ok(const char *key)
{
    size_t n = 0;
    while (key[n] >= 0x20 && key[n] < 0x7f && n <= RUN_KEY_MAX) n++;
    return key[n] == 0 && n >= 1 && n <= RUN_KEY_MAX;
}

const struct run_field *field_find(const struct run_type *t, const char *key)
{
    for (size_t i = 0; i < t->n_fields; i++) {
        const char *name = t->fields[i].key;
        if (name[0] == key[0] && strcmp(name, key) == 0) return &t->fields[i];
    }
    return NULL;
}

static const char *check_estimate(const void *p)
{
    const struct run_estimate *e = p;
    if (e->lo.known && e->lo.v > e->value) return "lo is above value";
    if (e->hi.known && e->hi.v < e->value) return "hi is below value";
    return NULL;
}

static const char *check_latency(const void *p)
{
    const struct run_latency *l = p;
    if (l->min.known && l->max.known && l->min.v > l->max.v) return "min is above max";
    return NULL;
}

static const char *check_histogram(const void *p)
{
    const struct run_histogram *h = p;
    if (h->scale < -10 || h->scale > 20) return "scale is not within -10 to 20";
    if (h->offset < INT32_MIN || h->offset > INT32_MAX) return "offset has more than 32 bits";
    return NULL;
}

static const char *check_graph(const void *p)
{
    const struct run_graph *g = p;
    return g->n_from != g->n_to ? "from and to are not of one length" : NULL;
}

static const char *check_proof(const void *p)
{
    const struct run_proof *f = p;
    if (f->ratio_lo.known && f->ratio_lo.v > f->ratio) return "ratio_lo is above ratio";
    if (f->ratio_hi.known && f->ratio_hi.v < f->ratio) return "ratio_hi is below ratio";
    return NULL;
}

static const char *check_packed(const void *p)
{
    const struct run_packed *k = p;
    if (k->cap > RUN_SAMPLES_MAX) return "cap is above 1048576";
    if (k->count > k->cap) return "count is above cap";
    return NULL;
}

static const char *check_span(struct known_f64 start, struct known_f64 end)
{
    return start.known && end.known && start.v > end.v ? "start_s is after end_s" : NULL;
}

static const char *check_phase(const void *p)
{
    const struct run_phase *phase = p;
    return check_span(phase->start_s, phase->end_s);
}

static const char *check_alert(const void *p)
{
    const struct run_alert *alert = p;
    return check_span(alert->start_s, alert->end_s);
}

static const char *check_metric(const void *p)
{
    const struct run_metric *m = p;
    return m->min.known && m->max.known && m->min.v > m->max.v ? "min is above max" : NULL;
}

static const char *check_slo(const void *p)
{
    const struct requests_slo *o = p;
    if (o->objective >= 1) return "objective must be below 1: there is no budget to spend else";
    return o->threshold_ns == 0 ? "threshold_ns must be above 0" : NULL;
}

static const char *check_requests(const void *p)
{
    const struct requests *r = p;
    if (r->to_ms <= r->from_ms) return "to_ms is not after from_ms";
    return r->to_ms - r->from_ms > REQUESTS_INTERVAL_MS ? "the interval is longer than a minute" : NULL;
}

/* ---- the rows ---- */

#define HERE run_estimate
#include "run/as_rows.h"
static const struct run_field time_rows[] = {
    {ROW("value", F64, FIELD_REQUIRED | FIELD_PLAIN | FIELD_WHOLE, value)},
    {ROW("lo", F64, FIELD_WHOLE, lo)},
    {ROW("hi", F64, FIELD_WHOLE, hi)},
};
static const struct run_field estimate_rows[] = {
    {ROW("value", F64, FIELD_REQUIRED | FIELD_PLAIN, value)},
    {ROW("lo", F64, 0, lo)},
    {ROW("hi", F64, 0, hi)},
};
static const struct run_type time_type = {time_rows, 3, sizeof(struct run_estimate), true, check_estimate};
static const struct run_type estimate_type = {estimate_rows, 3, sizeof(struct run_estimate), true,
                                              check_estimate};
#undef HERE

#include "run/run_fields.def"

#include "run/as_rows.h"
#include "run/comparison_fields.def"

#include "run/as_rows.h" /* NOLINT(readability-duplicate-include): once for each list */
#include "run/gpu_fields.def"

#include "run/as_rows.h" /* NOLINT(readability-duplicate-include) */
#include "run/requests_fields.def"

#include "run/as_rows.h" /* NOLINT(readability-duplicate-include) */
#include "run/sla_fields.def"

const struct run_form run_form = {RUN_SCHEMA, "run document", &run_type};
const struct run_form watched_form = {"tare.watched/1", "summary of samples", &run_watched_type};
const struct run_form comparison_form = {COMPARISON_SCHEMA, "comparison document", &comparison_type};
const struct run_form gpu_form = {GPU_SCHEMA, "GPU profile", &gpu_profile_type};
const struct run_form requests_form = {REQUESTS_SCHEMA, "batch of requests", &requests_type};
const struct run_form sla_form = {SLA_SCHEMA, "report on a service", &sla_type};
const struct run_type *const field_packed = &run_packed_type, *const field_case = &run_case_type,
                             *const field_host = &run_host_type;

/* ---- numbers by path ---- */

static bool number_at(const struct run_type *t, const void *obj, const char *key, struct known_f64 *out)
{
    const struct run_field *f = field_find(t, key);
    if (!f) return false;
    const void *p = (const char *)obj + f->offset;
    const struct known_u64 *u = p;
    const struct known_i64 *i = p;
    const struct known_f64 *d = p;
    bool plain = f->flags & FIELD_PLAIN;
    if (f->kind == FIELD_F64) *out = plain ? known_f64(*(const double *)p) : *d;
    if (f->kind == FIELD_U64 && !plain) *out = (struct known_f64){u->known, (double)u->v};
    if (f->kind == FIELD_I64 && !plain) *out = (struct known_f64){i->known, (double)i->v};
    return out->known;
}

/* Into the parts that a path names, down to a number; an object stands for its value. */
static bool value_at(const struct run_type *t, const void *obj, const char *path, struct run_estimate *out)
{
    char key[64];
    struct known_f64 value = {0}, lo = {0}, hi = {0};
    size_t n = strcspn(path, ".");
    if (n >= sizeof key) return false;
    memcpy(key, path, n);
    key[n] = 0;
    const struct run_field *f = field_find(t, key);
    if (f && f->kind == FIELD_OBJECT) {
        const void *inner = (const char *)obj + f->offset;
        if (!(f->flags & FIELD_REQUIRED) && !*(const bool *)inner) return false;
        return value_at(f->type, inner, path[n] ? path + n + 1 : "value", out);
    }
    if (path[n] || !number_at(t, obj, key, &value)) return false;
    if (strcmp(key, "value") == 0) {
        number_at(t, obj, "lo", &lo);
        number_at(t, obj, "hi", &hi);
    }
    *out = (struct run_estimate){true, value.v, lo, hi};
    return true;
}

bool run_case_value(const struct run_case *c, const char *path, struct run_estimate *out)
{
    return value_at(&run_case_type, c, path, out);
}

bool run_launch_value(const struct run_launch *l, const char *path, struct run_estimate *out)
{
    return value_at(&run_launch_type, l, path, out);
}

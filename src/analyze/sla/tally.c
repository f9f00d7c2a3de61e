/* SPDX-License-Identifier: MIT
 * tally.c - see tally.h. */
#include "analyze/sla/tally.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "core/str.h"
#include "core/wire.h"

void tally_release(struct tally *t)
{
    hist_release(&t->latency);
    hist_release(&t->first_byte);
    for (size_t i = 0; i < t->n_worst; i++) mem_free(t->worst[i]);
    *t = (struct tally)TALLY_INIT;
}

static void add(uint64_t *to, uint64_t n)
{
    if (__builtin_add_overflow(*to, n, to) || *to > INT64_MAX) *to = INT64_MAX;
}

/* A promise is its threshold and its objective: who changes one of them makes another. */
static tare_status add_slo(struct tally *t, const struct tally_slo *from, tare_error *err)
{
    struct tally_slo *at = t->slo, *end = t->slo + t->n_slo;
    while (at < end && (at->threshold_ns != from->threshold_ns || at->objective != from->objective)) at++;
    if (at == end) {
        if (t->n_slo == TALLY_SLOS)
            return error_set(err, TARE_INVALID, "more than %d thresholds within one hour", TALLY_SLOS);
        *at = (struct tally_slo){.threshold_ns = from->threshold_ns, .objective = from->objective};
        t->n_slo++;
    }
    add(&at->within, from->within);
    add(&at->breached, from->breached);
    return TARE_OK;
}

/* By time, then by name, so that the order in which tallies are added makes no difference. */
static bool is_worse(const struct tally_worst *a, const struct tally_worst *b)
{
    if (a->latency_ns != b->latency_ns) return a->latency_ns > b->latency_ns;
    if (a->at_ms != b->at_ms) return a->at_ms > b->at_ms;
    return strcmp(a->id, b->id) < 0;
}

static tare_status add_worst(struct tally *t, const struct tally_worst *from, tare_error *err)
{
    size_t at = 0;
    while (at < t->n_worst && !is_worse(from, t->worst[at])) at++;
    if (at == REQUESTS_WORST) return TARE_OK;
    struct tally_worst *one =
        t->n_worst == REQUESTS_WORST ? t->worst[t->n_worst - 1] : mem_new(1, sizeof *one);
    if (!one) return error_nomem(err, "one of the slowest requests");
    if (t->n_worst < REQUESTS_WORST) t->n_worst++;
    memmove(&t->worst[at + 1], &t->worst[at], (t->n_worst - 1 - at) * sizeof *t->worst);
    t->worst[at] = one;
    *one = *from;
    return TARE_OK;
}

static tare_status add_worst_of(struct tally *t, const struct requests_worst *from, tare_error *err)
{
    struct tally_worst one = {.at_ms = from->at_ms, .latency_ns = from->latency_ns};
    snprintf(one.id, sizeof one.id, "%s", from->id);
    snprintf(one.failed, sizeof one.failed, "%s", from->failed ? from->failed : "");
    return add_worst(t, &one, err);
}

tare_status tally_add_route(struct tally *t, const struct requests_route *r, tare_error *err)
{
    struct hist latency, first_byte;
    tare_status s = requests_hist(&r->latency_ns, &latency, err);
    if (s == TARE_OK) s = requests_hist(&r->first_byte_ns, &first_byte, err);
    if (s == TARE_OK) s = hist_merge(&t->latency, &latency, err);
    if (s == TARE_OK) s = hist_merge(&t->first_byte, &first_byte, err);
    for (size_t i = 0; i < r->slo.n && s == TARE_OK; i++) {
        const struct requests_slo *o = r->slo.at[i];
        s = add_slo(t, &(struct tally_slo){o->threshold_ns, o->objective, o->within, o->breached}, err);
    }
    for (size_t i = 0; i < r->worst.n && s == TARE_OK; i++) s = add_worst_of(t, r->worst.at[i], err);
    add(&t->errors, r->errors);
    add(&t->cancelled, r->cancelled);
    return s;
}

tare_status tally_merge(struct tally *t, const struct tally *from, tare_error *err)
{
    tare_status s = hist_merge(&t->latency, &from->latency, err);
    if (s == TARE_OK) s = hist_merge(&t->first_byte, &from->first_byte, err);
    for (size_t i = 0; i < from->n_slo && s == TARE_OK; i++) s = add_slo(t, &from->slo[i], err);
    for (size_t i = 0; i < from->n_worst && s == TARE_OK; i++) s = add_worst(t, from->worst[i], err);
    add(&t->errors, from->errors);
    add(&t->cancelled, from->cancelled);
    add(&t->lost, from->lost);
    t->minutes |= from->minutes;
    return s;
}

/* ---- bytes ---- */

enum {
    AT_LATENCY = 1,
    AT_FIRST_BYTE = 2,
    AT_ERRORS = 3,
    AT_CANCELLED = 4,
    AT_LOST = 5,
    AT_MINUTES = 6,
    AT_SLO = 7,   /* packed: threshold, objective as the bits of a double, within, breached */
    AT_WORST = 8, /* a message: 1 at_ms, 2 latency_ns, 3 id, 4 failed */
};

static void put_bytes(struct buf *out, uint32_t field, struct buf *inner)
{
    if (inner->len || inner->failed) wire_add_message(out, field, inner);
}

static void put_count(struct buf *out, uint32_t field, uint64_t n)
{
    if (n) wire_add_uint(out, field, n);
}

tare_status tally_encode(const struct tally *t, struct buf *out, tare_error *err)
{
    struct buf inner = BUF_INIT;
    hist_encode(&t->latency, &inner);
    put_bytes(out, AT_LATENCY, &inner);
    hist_encode(&t->first_byte, &inner);
    put_bytes(out, AT_FIRST_BYTE, &inner);
    put_count(out, AT_ERRORS, t->errors);
    put_count(out, AT_CANCELLED, t->cancelled);
    put_count(out, AT_LOST, t->lost);
    put_count(out, AT_MINUTES, t->minutes);
    for (size_t i = 0; i < t->n_slo; i++) {
        uint64_t bits;
        memcpy(&bits, &t->slo[i].objective, sizeof bits);
        const uint64_t all[] = {t->slo[i].threshold_ns, bits, t->slo[i].within, t->slo[i].breached};
        for (size_t k = 0; k < 4; k++) wire_add_varint(&inner, all[k]);
        put_bytes(out, AT_SLO, &inner);
    }
    for (size_t i = 0; i < t->n_worst; i++) {
        wire_add_uint(&inner, 1, t->worst[i]->at_ms);
        wire_add_uint(&inner, 2, t->worst[i]->latency_ns);
        wire_add_str(&inner, 3, t->worst[i]->id);
        if (t->worst[i]->failed[0]) wire_add_str(&inner, 4, t->worst[i]->failed);
        put_bytes(out, AT_WORST, &inner);
    }
    buf_release(&inner);
    return buf_status(out, err);
}

static tare_status decode_slo(struct tally *t, const struct wire_field *f, tare_error *err)
{
    struct wire w = {f->bytes, f->bytes + f->n};
    const char *why = "a promise that is cut short";
    uint64_t all[4];
    for (size_t i = 0; i < 4; i++)
        if (wire_packed(&w, WIRE_VARINT, &all[i], &why) != 1) return error_set(err, TARE_FORMAT, "%s", why);
    struct tally_slo o = {.threshold_ns = all[0], .within = all[2], .breached = all[3]};
    memcpy(&o.objective, &all[1], sizeof o.objective);
    if (w.at != w.end || !(o.objective >= 0 && o.objective < 1) || o.threshold_ns == 0 ||
        o.threshold_ns > INT64_MAX || o.within > INT64_MAX || o.breached > INT64_MAX)
        return error_set(err, TARE_FORMAT, "a promise that is none");
    return add_slo(t, &o, err);
}

static bool take_line(char to[TALLY_LINE], const struct wire_field *f)
{
    if (f->n >= TALLY_LINE || memchr(f->bytes, 0, f->n) || !str_is_utf8((const char *)f->bytes, f->n))
        return false;
    memcpy(to, f->bytes, f->n);
    to[f->n] = 0;
    return true;
}

static tare_status decode_worst(struct tally *t, const struct wire_field *outer, tare_error *err)
{
    struct wire w = {outer->bytes, outer->bytes + outer->n};
    struct tally_worst one = {0};
    struct wire_field f;
    const char *why = NULL;
    bool ok = true;
    while (ok && wire_next(&w, &f, &why) == 1) {
        if (f.number == 1 && f.type == WIRE_VARINT)
            one.at_ms = f.value;
        else if (f.number == 2 && f.type == WIRE_VARINT)
            one.latency_ns = f.value;
        else if (f.number == 3 && f.type == WIRE_BYTES)
            ok = take_line(one.id, &f);
        else if (f.number == 4 && f.type == WIRE_BYTES)
            ok = take_line(one.failed, &f);
    }
    if (!ok || why || !one.id[0] || one.at_ms > INT64_MAX || one.latency_ns > INT64_MAX)
        return error_set(err, TARE_FORMAT, "%s", why ? why : "one of the slowest requests is none");
    return add_worst(t, &one, err);
}

static uint64_t *count_of(struct tally *t, uint32_t number)
{
    switch (number) {
    case AT_ERRORS: return &t->errors;
    case AT_CANCELLED: return &t->cancelled;
    case AT_LOST: return &t->lost;
    default: return NULL;
    }
}

/* What a newer version added is skipped. */
static tare_status decode_field(struct tally *t, const struct wire_field *f, tare_error *err)
{
    uint64_t *count = count_of(t, f->number);
    if (f->type == WIRE_VARINT && count) {
        if (f->value > INT64_MAX) return error_set(err, TARE_FORMAT, "a count that is too large");
        add(count, f->value);
    } else if (f->type == WIRE_VARINT && f->number == AT_MINUTES) {
        t->minutes |= f->value;
    } else if (f->type == WIRE_BYTES && f->number == AT_LATENCY) {
        return hist_decode(&t->latency, f->bytes, f->n, err);
    } else if (f->type == WIRE_BYTES && f->number == AT_FIRST_BYTE) {
        return hist_decode(&t->first_byte, f->bytes, f->n, err);
    } else if (f->type == WIRE_BYTES && f->number == AT_SLO) {
        return decode_slo(t, f, err);
    } else if (f->type == WIRE_BYTES && f->number == AT_WORST) {
        return decode_worst(t, f, err);
    }
    return TARE_OK;
}

tare_status tally_decode(struct tally *t, const void *bytes, size_t n, tare_error *err)
{
    struct wire w = {bytes, (const uint8_t *)bytes + n};
    struct wire_field f;
    const char *why = NULL;
    int rc;
    while ((rc = wire_next(&w, &f, &why)) == 1) {
        tare_status s = decode_field(t, &f, err);
        if (s != TARE_OK) return s;
    }
    return rc < 0 ? error_set(err, TARE_FORMAT, "%s", why) : TARE_OK;
}

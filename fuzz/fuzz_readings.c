/* SPDX-License-Identifier: MIT
 * fuzz_readings.c - any bytes as a batch of samples, as an OTLP request in both its forms and as a chunk of the store.
 * What is taken obeys the rules: names, labels, finite values, series in order; what is refused has a text; nothing
 * beyond the bytes is read. What is packed comes back as it was. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/live/gunzip.h"
#include "server/live/readings.h"
#include "store/chunk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

static const int64_t now_ms = INT64_C(1763200000000);

struct expected {
    const struct store_reading *at;
    size_t n;
};

static tare_status same(void *ctx, const struct chunk_value *v, tare_error *err)
{
    struct expected *e = ctx;
    (void)err;
    must(e->n > 0 && e->at->metric + 1 == v->metric && e->at->at_ms == v->at_ms && e->at->value == v->value);
    e->at++;
    e->n--;
    return TARE_OK;
}

static void check_packed(const struct readings *r)
{
    struct buf body = BUF_INIT;
    int64_t from = INT64_MAX;
    for (size_t i = 0; i < r->at.n; i++)
        if (r->at.items[i].at_ms < from) from = r->at.items[i].at_ms;
    for (size_t i = 0, n; i < r->at.n; i += n) {
        const struct store_reading *first = &r->at.items[i];
        for (n = 1; i + n < r->at.n && first[n].metric == first->metric;) n++;
        chunk_add(&body, first->metric + 1, from, first, n);
    }
    struct store_chunk c = {.from_ms = from, .body = {body.data, body.len}};
    struct expected e = {r->at.items, r->at.n};
    must(chunk_read(&c, same, &e, NULL) == TARE_OK && e.n == 0);
    buf_release(&body);
}

static void check_rules(const struct readings *r)
{
    must(r->at.n > 0 && r->at.n <= READINGS_MAX && store_name_ok(r->host));
    for (size_t i = 0; i < r->metrics.n; i++) {
        const struct store_metric *m = &r->metrics.items[i];
        must(store_name_ok(m->name) && readings_text_ok(m->label, READING_LABEL_MAX));
    }
    for (size_t i = 0; i < r->at.n; i++) {
        const struct store_reading *one = &r->at.items[i];
        must(one->metric < r->metrics.n && isfinite(one->value) && one->at_ms > 0);
        must(one->at_ms <= now_ms + READINGS_AHEAD_MS);
        must(!i || one[-1].metric < one->metric ||
             (one[-1].metric == one->metric && one[-1].at_ms <= one->at_ms));
    }
    check_packed(r);
}

static void read_batch(const char *bytes, size_t n)
{
    struct arena arena = ARENA_INIT;
    struct readings r;
    tare_error err = TARE_ERROR_INIT;
    readings_init(&r, &arena);
    tare_status s = readings_read_json(&r, bytes, n, &err);
    if (s == TARE_OK) s = readings_close(&r, now_ms, &err);
    if (s == TARE_OK) {
        must(readings_id_ok(r.id));
        check_rules(&r);
    }
    must(s == TARE_OK || err.text[0]);
    readings_release(&r);
    arena_release(&arena);
}

static void read_otlp(const char *bytes, size_t n, bool proto)
{
    struct otlp o = {.arena = ARENA_INIT};
    tare_error err = TARE_ERROR_INIT;
    tare_status s = (proto ? otlp_read_proto(&o, bytes, n, &err) : otlp_read_json(&o, bytes, n, &err));
    must(s == TARE_OK || err.text[0]);
    if (s == TARE_OK) otlp_close(&o, now_ms);
    for (size_t i = 0; i < o.hosts.at.n && s == TARE_OK; i++) check_rules(o.hosts.at.items[i]);
    must(!o.rejected || o.why[0]);
    otlp_release(&o);
}

static tare_status count(void *ctx, const struct chunk_value *v, tare_error *err)
{
    (void)err;
    (void)v;
    ++*(size_t *)ctx;
    return TARE_OK;
}

static void unpack_gzip(const char *bytes, size_t size)
{
    struct buf out = BUF_INIT;
    enum { MOST = 1 << 16 };
    tare_status s = gunzip(&out, bytes, size, MOST, NULL);
    must(s == TARE_OK || s == TARE_FORMAT || s == TARE_INVALID);
    must(out.len <= MOST + 16384 && (s != TARE_OK || out.len <= MOST));
    buf_release(&out);
}

/* The first byte says as what. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    const char *bytes = (const char *)data + 1;
    struct store_chunk c = {.from_ms = now_ms, .body = {bytes, size - 1}};
    size_t n = 0;
    if (data[0] == 'c') must(chunk_read(&c, count, &n, NULL) != TARE_OK || n <= size);
    if (data[0] == 'o' || data[0] == 'p') read_otlp(bytes, size - 1, data[0] == 'p');
    if (data[0] == 'g') unpack_gzip(bytes, size - 1);
    if (data[0] == 'r') {
        struct bucket at[ROLLUP_ENTRIES_MAX] = {0};
        rollup_unpack(&c.body, at, NULL);
    }
    if (data[0] == 'b') read_batch(bytes, size - 1);
    return 0;
}

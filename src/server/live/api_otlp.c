/* SPDX-License-Identifier: MIT
 * api_otlp.c - metrics of other tools by OTLP/HTTP, in JSON or protobuf. A request has no id: its bytes are the
 * batch's, so that a request that is sent again counts once. The reply is in the form of the request. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/mem.h"
#include "core/wire.h"
#include "server/live/api_metrics.h"
#include "server/live/gunzip.h"
#include "server/route.h"

enum { ID_BYTES = 16 };
#define PROTOBUF "application/x-protobuf"

struct export
{
    struct otlp otlp;
    char id[8 + 2 * ID_BYTES];
    bool proto;                  /* not JSON */
    struct store_batch *batches; /* one for each host */
    enum store_kept *kept;
};

static void forget_export(struct exchange *x)
{
    struct export *e = x->work;
    if (e) otlp_release(&e->otlp);
    mem_free(e);
}

static void name_batches(struct exchange *x, struct export *e)
{
    size_t n = e->otlp.hosts.at.n;
    e->batches = arena_new(&e->otlp.arena, n + 1, sizeof *e->batches);
    e->kept = arena_new(&e->otlp.arena, n + 1, sizeof *e->kept);
    for (size_t i = 0; i < n && e->batches && e->kept; i++) {
        struct readings *r = e->otlp.hosts.at.items[i];
        r->id = e->id;
        api_batch_of(&e->batches[i], x, r);
        int at = snprintf(e->id, sizeof e->id, "otlp-");
        for (int k = 0; k < ID_BYTES; k++) snprintf(e->id + at + 2 * k, 3, "%02x", e->batches[i].hash[k]);
    }
}

/* From here on the body is as if it had come unpacked. False: answered. */
static bool unpack(struct exchange *x)
{
    const char *coding = http_header(&x->head, "content-encoding");
    struct buf plain = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    if (!coding || strcasecmp(coding, "gzip") != 0) return true;
    tare_status s = gunzip(&plain, x->body.data, x->body.len, x->route->body_max, &err);
    if (s == TARE_OK) {
        buf_release(&x->body);
        x->body = plain;
        return true;
    }
    buf_release(&plain);
    if (s == TARE_NOMEM)
        reply_problem(x, 503, "no memory");
    else
        reply_refused(x, s == TARE_INVALID ? 413 : 400, &err);
    return false;
}

static void check_export(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    if (!unpack(x)) return;
    struct export *e = x->work = mem_new(1, sizeof *e);
    tare_status status = e ? TARE_OK : error_nomem(&err, "an export");
    (void)sv;
    (void)s;
    if (e) {
        e->proto = exchange_has_type(x, PROTOBUF);
        status = e->proto ? otlp_read_proto(&e->otlp, x->body.data, x->body.len, &err)
                          : otlp_read_json(&e->otlp, x->body.data, x->body.len, &err);
    }
    if (status == TARE_OK) {
        otlp_close(&e->otlp, (int64_t)(clock_unix_ns() / 1000000));
        name_batches(x, e);
        if (e->otlp.arena.failed) status = error_nomem(&err, "an export");
    }
    if (status != TARE_OK) reply_refused(x, 400, &err);
}

static tare_status keep_export(struct server *sv, struct store *s, struct exchange *x, tare_error *err)
{
    struct export *e = x->work;
    tare_status status = TARE_OK;
    (void)sv;
    for (size_t i = 0; i < e->otlp.hosts.at.n && status == TARE_OK; i++)
        status = s->ops->batch_add(s, &e->batches[i], &e->kept[i], err);
    if (status == TARE_OK) reply_json(x, 200);
    return status;
}

static void write_proto(struct exchange *x, uint64_t rejected, const char *why)
{
    struct buf part = BUF_INIT;
    x->reply.type = PROTOBUF;
    if (rejected) {
        wire_add_uint(&part, 1, rejected);
        wire_add_str(&part, 2, why);
        wire_add_message(&x->reply.body, 1, &part);
    }
    buf_release(&part);
}

static void write_json(struct exchange *x, uint64_t rejected, const char *why)
{
    char number[24];
    struct json j;
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    if (rejected) {
        snprintf(number, sizeof number, "%" PRIu64, rejected);
        json_key(&j, "partialSuccess");
        json_object_begin(&j);
        json_kv_string(&j, "rejectedDataPoints", number);
        json_kv_string(&j, "errorMessage", why);
        json_object_end(&j);
    }
    json_object_end(&j);
    json_finish(&j, NULL);
}

/* What was not kept is told as the protocol has it: such data points are not to be sent again. */
static void answer_export(struct server *sv, struct store *s, struct exchange *x)
{
    struct export *e = x->work;
    uint64_t rejected = e->otlp.rejected;
    const char *why = e->otlp.why;
    (void)sv;
    (void)s;
    for (size_t i = 0; i < e->otlp.hosts.at.n; i++) {
        if (e->kept[i] != STORE_CROWDED) continue;
        if (!rejected) why = "the host has too many series";
        rejected += e->batches[i].n_readings;
    }
    (e->proto ? write_proto : write_json)(x, rejected, why);
}

const struct steps otlp_post = {
    .read = check_export,
    .write = keep_export,
    .written = answer_export,
    .forget = forget_export,
    .replies = "200",
    .takes = PROTOBUF,
    .gzip = true,
    .example = "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[{\"key\":\"host.name\",\"value\":"
               "{\"stringValue\":\"gpu7\"}}]},\"scopeMetrics\":[{\"metrics\":[{\"name\":\"app.queue\",\"gauge\":"
               "{\"dataPoints\":[{\"timeUnixNano\":\"1763200000000000000\",\"asDouble\":3.5}]}}]}]}]}",
};

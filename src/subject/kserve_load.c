/* SPDX-License-Identifier: MIT
 * kserve_load.c - see kserve_load.h. */
#include "subject/kserve_load.h"

#include <stdio.h>
#include <stdlib.h>

#include "load/whole_body.h"

static tare_status fill(void *ctx, uint64_t number, struct load_request *out, tare_error *err)
{
    const struct kserve_load *k = ctx;
    (void)number;
    buf_add(&out->headers, k->headers.data, k->headers.len);
    buf_add(&out->body, k->body.data, k->body.len);
    tare_status s = buf_status(&out->headers, err);
    return s < 0 ? s : buf_status(&out->body, err);
}

struct load_source kserve_source(struct kserve_load *k)
{
    const char *type = k->headers.len ? "application/octet-stream" : "application/json";
    return (struct load_source){.fill = fill, .ctx = k, .content_type = type, .same = true, .period = 1};
}

tare_status kserve_load_open(struct kserve_load *k, const char *inputs, bool binary, tare_error *err)
{
    struct tensor_set set = TENSOR_SET_INIT;
    size_t n_json = 0;
    *k = (struct kserve_load)KSERVE_LOAD_INIT;
    tare_status s = tensor_load(&set, inputs, TENSOR_INPUTS, err);
    if (s == TARE_OK) s = kserve_encode(&set, binary, &k->body, &n_json, err);
    if (binary) buf_printf(&k->headers, KSERVE_HEAD_LENGTH ": %zu\r\n", n_json);
    if (s == TARE_OK) s = buf_status(&k->headers, err);
    tensor_set_release(&set);
    if (s < 0) kserve_load_close(k);
    return s;
}

void kserve_load_close(struct kserve_load *k)
{
    buf_release(&k->body);
    buf_release(&k->headers);
}

/* ---- answers ---- */

struct answer {
    struct whole_body body;
    size_t n_json;
};

static void answer_begin(void *ctx, void *state, const struct http_head *head, struct load_outcome *o)
{
    struct answer *a = state;
    const char *length = http_header(head, "inference-header-content-length");
    whole_body_begin(ctx, &a->body, head, o);
    a->n_json = length ? (size_t)strtoull(length, NULL, 10) : 0;
}

static const char *answer_end(void *ctx, void *state, struct load_outcome *o)
{
    struct kserve_load *k = ctx;
    struct answer *a = state;
    struct tensor_set out = TENSOR_SET_INIT;
    tare_error err = TARE_ERROR_INIT;
    struct kserve_answer answer = {a->body.bytes.data, a->body.bytes.len, a->n_json};
    tare_status s = a->body.too_long ? error_set(&err, TARE_FORMAT, "the answer is larger than is read")
                                     : kserve_decode(&answer, &out, &err);
    const char *why = s == TARE_OK && k->look.outputs ? k->look.outputs(k->look.ctx, &out, o) : NULL;
    tensor_set_release(&out);
    if (s == TARE_OK) return why;
    o->fault = LOAD_BODY;
    snprintf(k->why, sizeof k->why, "%.200s", err.text);
    return k->why;
}

static void answers_clear(void *ctx)
{
    struct kserve_load *k = ctx;
    if (k->look.clear) k->look.clear(k->look.ctx);
}

struct load_reader kserve_reader(struct kserve_load *k)
{
    return (struct load_reader){
        .name = "kserve",
        .size = sizeof(struct answer),
        .ctx = k,
        .clear = answers_clear,
        .open = whole_body_open,
        .close = whole_body_close,
        .begin = answer_begin,
        .bytes = whole_body_bytes,
        .end = answer_end,
    };
}

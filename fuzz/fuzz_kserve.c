/* SPDX-License-Identifier: MIT
 * fuzz_kserve.c - any bytes as an answer of KServe v2; the first two say where its JSON ends. Outputs that are taken
 * have the bytes of their shapes, and can be sent on in binary. */
#include <stdint.h>
#include <stdlib.h>

#include "subject/kserve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    struct tensor_set out = TENSOR_SET_INIT;
    struct kserve_answer a = {(const char *)data + 2, size - 2, (size_t)data[0] << 8 | data[1]};
    tare_error err = TARE_ERROR_INIT;
    if (kserve_decode(&a, &out, &err) < 0) must(err.text[0]);
    for (size_t i = 0; i < out.items.n; i++) {
        const struct tensor *t = &out.items.items[i];
        uint64_t elements;
        size_t bytes;
        must(tensor_bytes(t->type, t->dims, t->rank, &elements, &bytes) && bytes == t->bytes && t->name);
    }
    struct buf body = BUF_INIT;
    size_t n_json;
    must(kserve_encode(&out, true, &body, &n_json, &err) == TARE_OK && n_json <= body.len);
    buf_release(&body);
    tensor_set_release(&out);
    return 0;
}

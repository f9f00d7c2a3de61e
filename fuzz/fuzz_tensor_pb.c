/* SPDX-License-Identifier: MIT
 * fuzz_tensor_pb.c - tensor_read_pb() on any bytes: every element of what is accepted can be read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "subject/tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tensor t;
    tare_error err = TARE_ERROR_INIT;
    if (tensor_read_pb(&t, "fuzz", data, size, &err) < 0) {
        must(err.text[0] != 0);
        return 0;
    }
    must(t.data && t.name && t.bytes <= size * 16);
    double sum = 0;
    for (uint64_t i = 0, n = tensor_elements(&t); i < n; i++) sum += tensor_value(&t, i);
    (void)sum;
    tensor_release(&t);
    return 0;
}

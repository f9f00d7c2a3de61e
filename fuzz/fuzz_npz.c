/* SPDX-License-Identifier: MIT
 * fuzz_npz.c - tensor_read_npz() on any bytes: archives that lie about sizes, places and checksums. */
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
    struct tensor_set set = TENSOR_SET_INIT;
    tare_error err = TARE_ERROR_INIT;
    if (tensor_read_npz(&set, "fuzz", data, size, &err) < 0) {
        must(err.text[0] != 0 && set.items.n == 0);
        return 0;
    }
    for (size_t i = 0; i < set.items.n; i++) {
        struct tensor *t = &set.items.items[i];
        must(t->data && tensor_find(&set, t->name) == t);
        double sum = 0;
        for (uint64_t k = 0, n = tensor_elements(t); k < n; k++) sum += tensor_value(t, k);
        (void)sum;
    }
    tensor_set_release(&set);
    return 0;
}

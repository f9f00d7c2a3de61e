/* SPDX-License-Identifier: MIT
 * fuzz_npy.c - tensor_read_npy() on any bytes. What is read must be written, and read again be the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/npz_write.h"
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
    if (tensor_read_npy(&t, "fuzz", data, size, &err) < 0) {
        must(err.text[0] != 0);
        return 0;
    }
    must(t.data && (uintptr_t)t.data % 64 == 0 && t.bytes <= size);
    double sum = 0;
    for (uint64_t i = 0, n = tensor_elements(&t); i < n; i++) sum += tensor_value(&t, i);
    (void)sum;
    struct buf again = BUF_INIT;
    struct tensor copy;
    must(tensor_write_npy(&t, &again, &err) == TARE_OK);
    must(tensor_read_npy(&copy, "again", again.data, again.len, &err) == TARE_OK);
    must(copy.bytes == t.bytes && copy.rank == t.rank && copy.type == t.type &&
         memcmp(copy.data, t.data, t.bytes) == 0);
    tensor_release(&copy);
    tensor_release(&t);
    buf_release(&again);
    return 0;
}

/* SPDX-License-Identifier: MIT
 * fuzz_trace.c - an archive of any bytes: once as it is, once with the checksums made right, so that damage gets
 * past them into the decoders. */
#include "mend_trace.h"
#include "walk_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    walk_bytes(data, size);
    uint8_t *copy = malloc(size + 1);
    must(copy != NULL);
    memcpy(copy, data, size);
    mend(copy, size);
    walk_bytes(copy, size);
    free(copy);
    return 0;
}

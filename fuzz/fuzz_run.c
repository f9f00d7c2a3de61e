/* SPDX-License-Identifier: MIT
 * fuzz_run.c - run_read() on any bytes. A document that is read must be written, and its text read and written
 * again must be the same: whatever gets past the reader is a document in full. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "run/run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run r, again;
    struct buf first = BUF_INIT, second = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    if (run_read(&r, "fuzz", data, size, &err) < 0) {
        must(err.text[0] != 0);
        return 0;
    }
    must(run_write(&r, &first, &err) == TARE_OK);
    must(run_read(&again, "again", first.data, first.len, &err) == TARE_OK);
    must(run_write(&again, &second, &err) == TARE_OK);
    must(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    run_release(&again);
    run_release(&r);
    buf_release(&first);
    buf_release(&second);
    return 0;
}

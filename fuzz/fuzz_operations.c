/* SPDX-License-Identifier: MIT
 * fuzz_operations.c - the operator's file, and requests against it: the first line of the input that begins with ---
 * divides them. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/jobs/operations.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is let through keeps the promises that the runner relies on. */
static void check_call(const struct operation *op, const struct call *c)
{
    size_t n = 0;
    while (c->argv[n]) n++;
    if (n != op->argv.n || c->argv[0][0] != '/' || strcmp(c->argv[0], op->argv.at[0]) != 0) abort();
    struct call again = CALL_INIT; /* what was checked is its own request */
    if (call_make(&again, op, c->input.data, c->input.len, NULL) != TARE_OK) abort();
    if (strcmp(again.input.data, c->input.data) != 0) abort();
    call_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct operations ops = OPERATIONS_INIT;
    const uint8_t *cut = size ? memmem(data, size, "\n---\n", 5) : NULL;
    size_t n = cut ? (size_t)(cut - data) : size;
    if (operations_read(&ops, "fuzz.json", data, n, NULL) == TARE_OK)
        for (size_t i = 0; i < ops.n; i++) {
            struct call c = CALL_INIT;
            const uint8_t *request = cut ? cut + 5 : (const uint8_t *)"{}";
            if (call_make(&c, &ops.at[i], request, cut ? size - n - 5 : 2, NULL) == TARE_OK)
                check_call(&ops.at[i], &c);
            call_release(&c);
        }
    operations_release(&ops);
    return 0;
}

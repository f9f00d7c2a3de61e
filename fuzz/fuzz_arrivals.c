/* SPDX-License-Identifier: MIT
 * fuzz_arrivals.c - any text as a log whose times are replayed: they begin at 0 and never go back. */
#include <stdint.h>
#include <stdlib.h>

#include "load/arrivals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct moments m = {VEC_INIT};
    size_t skipped;
    tare_error err = TARE_ERROR_INIT;
    struct replay r = {"log", (const char *)data, size, size % 2 ? 1 : 2.5};
    if (arrivals_replay(&r, &m, &skipped, &err) < 0) {
        must(err.text[0]);
    } else {
        must(m.at.n > 0 && m.at.items[0] == 0);
        for (size_t i = 1; i < m.at.n; i++) must(m.at.items[i] >= m.at.items[i - 1]);
    }
    vec_release(&m.at);
    return 0;
}

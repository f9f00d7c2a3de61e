/* SPDX-License-Identifier: MIT
 * fuzz_json_expect.c - any text as an expectation, up to the first NUL byte, and what follows it as an answer. What is
 * refused says why; an answer that is not as expected says what is not; the same answer is judged the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "load/json_expect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = memchr(data, 0, size);
    struct json_expect e = {VEC_INIT, ""};
    tare_error err = TARE_ERROR_INIT;
    if (!nul) return 0;
    if (json_expect_add(&e, (const char *)data, &err) < 0) {
        must(err.text[0] && !e.all.n);
    } else {
        const char *body = (const char *)nul + 1;
        size_t n = size - (size_t)(nul - data) - 1;
        bool holds = json_expect_holds(&e, body, n);
        must(holds || e.why[0]);
        must(holds == json_expect_holds(&e, body, n));
    }
    json_expect_close(&e);
    return 0;
}

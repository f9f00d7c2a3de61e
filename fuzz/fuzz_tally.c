/* SPDX-License-Identifier: MIT
 * fuzz_tally.c - any bytes as a tally of requests, or, where they begin with {, as a batch of requests. What is refused
 * says why; what is taken has counts that agree, and is the same after its own bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/sla/slo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

static void check_hist(struct hist h)
{
    uint64_t count = h.count;
    if (count > INT64_MAX || h.sum == UINT64_MAX) return; /* several that were added up */
    must(hist_fault(&h) == NULL && h.count == count);
    for (double q = 0; count && q <= 1; q += 0.125) {
        double v = hist_quantile(&h, q);
        must(v >= (double)h.min && v <= (double)h.max);
    }
}

static void round_trip(const struct tally *t)
{
    struct tally again = TALLY_INIT;
    struct buf one = BUF_INIT, two = BUF_INIT;
    check_hist(t->latency);
    check_hist(t->first_byte);
    must(tally_encode(t, &one, NULL) == TARE_OK);
    if (t->latency.count <= INT64_MAX && t->first_byte.count <= INT64_MAX && t->latency.sum != UINT64_MAX &&
        t->first_byte.sum != UINT64_MAX) {
        must(tally_decode(&again, one.data, one.len, NULL) == TARE_OK);
        must(tally_encode(&again, &two, NULL) == TARE_OK);
        must(one.len == two.len && (one.len == 0 || memcmp(one.data, two.data, one.len) == 0));
    }
    buf_release(&one);
    buf_release(&two);
    tally_release(&again);
}

static void as_batch(const uint8_t *data, size_t size)
{
    struct requests r;
    tare_error err = TARE_ERROR_INIT;
    if (requests_read(&r, "fuzz", data, size, &err) != TARE_OK) {
        must(memcmp(err.text, "fuzz", 4) == 0);
        return;
    }
    for (size_t i = 0; i < r.routes.n; i++) {
        struct tally t = TALLY_INIT;
        must(tally_add_route(&t, r.routes.at[i], &err) == TARE_OK);
        round_trip(&t);
        tally_release(&t);
    }
    requests_release(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tally t = TALLY_INIT;
    tare_error err = TARE_ERROR_INIT;
    if (size && data[0] == '{') {
        as_batch(data, size);
        return 0;
    }
    if (tally_decode(&t, data, size, &err) == TARE_OK)
        round_trip(&t);
    else
        must(err.text[0] != 0);
    tally_release(&t);
    return 0;
}

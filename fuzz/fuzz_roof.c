/* SPDX-License-Identifier: MIT
 * fuzz_roof.c - roof_cache_read() on any bytes: what it takes is a roof that can be written and read again. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probe/roof_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct roof_options o = {.threads = 2, .fingerprint = "h1-0123456789abcdef"};
    const int64_t now = 1794732695;
    struct roof r, again;
    struct buf text = BUF_INIT;
    if (!roof_cache_read(&r, &o, now, (const char *)data, size)) return 0;
    must(r.kernel && r.flops > 0 && isfinite(r.flops) && r.threads == 2 && r.cached);
    must(isnan(r.int_ops) ? !r.int_kernel : r.int_ops > 0 && r.int_kernel != NULL);
    must(isnan(r.bandwidth) || (r.bandwidth > 0 && isfinite(r.bandwidth)));
    must(memchr(r.measured, 0, sizeof r.measured) != NULL);
    roof_cache_write(&r, o.fingerprint, now, &text);
    must(roof_cache_read(&again, &o, now, text.data, text.len));
    must(again.kernel == r.kernel && fabs(again.flops / r.flops - 1) < 1e-8);
    buf_release(&text);
    return 0;
}

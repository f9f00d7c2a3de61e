/* SPDX-License-Identifier: MIT
 * fuzz_gpu_roof.c - gpu_roof_read() on any bytes: what it takes is a roof that can be written and read again. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probe/gpu_roof.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char host[] = "h1-0123456789abcdef";
    const int64_t now = 1794732695;
    struct gpu_roof r, again;
    struct buf text = BUF_INIT;
    if (!gpu_roof_read(&r, host, now, (const char *)data, size)) return 0;
    for (int k = 0; k < GPU_ROOF_KINDS; k++) {
        const struct interval *v = &r.of[k].per_s;
        must(isnan(v->value) || (v->value > 0 && isfinite(v->value) && v->lo > 0 && v->lo <= v->value));
        must(memchr(r.of[k].why, 0, sizeof r.of[k].why) != NULL);
    }
    gpu_roof_write(&r, host, now, &text);
    must(gpu_roof_read(&again, host, now, text.data, text.len));
    must(strcmp(again.device, r.device) == 0);
    buf_release(&text);
    return 0;
}

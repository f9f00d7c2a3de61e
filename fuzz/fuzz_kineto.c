/* SPDX-License-Identifier: MIT
 * fuzz_kineto.c - files of torch.profiler, plain or gzip, of any bytes: what is refused says where, what is taken adds
 * up. The trace goes nowhere; that any trace can be read is the work of fuzz_trace.c. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "import/kineto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct inflow *from;
    struct kineto_counts c;
    tare_error err = TARE_ERROR_INIT;
    if (inflow_of(&from, "fuzz", data, size, &err) < 0) abort();
    tare_status s = kineto_convert(from, "fuzz", "/dev/null", &c, &err);
    inflow_close(from);
    if (s < 0) must(s == TARE_FORMAT && (strncmp(err.text, "fuzz: ", 6) == 0 || strstr(err.text, "threads")));
    uint64_t taken = c.kernels + c.copies + c.fills + c.calls + c.operators + c.annotations + c.frames;
    must(taken <= c.events && (s < 0 || taken > 0));
    must((c.unusable > 0) == (c.first_bad[0] != 0));
    return 0;
}

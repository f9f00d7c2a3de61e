/* SPDX-License-Identifier: MIT
 * ab_work.c - a program with a knob: a chain of dependent operations, as many as its argument says, so that an exact
 * share of work can be added. For bench/ab_trials. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, x = UINT64_C(88172645463325252);
    for (uint64_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    printf("%" PRIu64 "\n", x);
    return 0;
}

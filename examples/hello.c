/* SPDX-License-Identifier: MIT
 * hello.c - the smallest instrumented program: a scope, a scope inside it, a counter and a mark.
 *
 *     cc -O2 hello.c -ltare -o hello && TARE_TRACE=hello.tare ./hello && tare report hello.tare */
#include <stdio.h>

#include <tare/tare.h>

static unsigned long collatz(unsigned long n)
{
    TARE_SCOPE("collatz"); /* ends with the block, by whatever way the block is left */
    unsigned long steps = 0;
    for (; n > 1; steps++) n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

int main(void)
{
    unsigned long longest = 0, start = 0;
    TARE_SCOPE("search");
    for (unsigned long n = 1; n <= 200000; n++) {
        unsigned long steps = collatz(n);
        tare_count("steps", (int64_t)steps); /* adds up below the scope that runs: "search" */
        if (steps <= longest) continue;
        longest = steps;
        start = n;
        tare_mark("record", "%lu takes %lu steps", n, steps); /* an instant on the timeline */
    }
    printf("the longest walk below 200001 starts at %lu and takes %lu steps\n", start, longest);
    return 0;
}

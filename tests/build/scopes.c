/* SPDX-License-Identifier: MIT
 * scopes.c - 10,000 rounds of four nested scopes, in a function that also begins one by hand and passes arguments on
 * its stack. With COUNT_CALLS (and the linker's --wrap) it says how often it called the library for a scope. */
#include <tare/tare.h>

#include <stdio.h>

enum { ROUNDS = 10000 };
static long calls;

#ifdef COUNT_CALLS
#define WRAP(name, parameters, arguments)                                                                    \
    void __real_##name parameters;                                                                           \
    void __wrap_##name parameters;                                                                           \
    void __wrap_##name parameters                                                                            \
    {                                                                                                        \
        calls++;                                                                                             \
        __real_##name arguments;                                                                             \
    }
WRAP(tare_begin, (tare_scope * scope, tare_site *site), (scope, site))
WRAP(tare_end, (tare_scope * scope), (scope))
WRAP(tare_begin_at_, (tare_scope * scope, tare_site *site, const char *sp), (scope, site, sp))
WRAP(tare_end_at_, (tare_scope * scope, uint64_t now), (scope, now))
#endif

static __attribute__((noinline)) int many(int n, ...)
{
    __asm__ volatile("" : : : "memory");
    return n;
}

static __attribute__((noinline)) int work(int n, tare_site *site)
{
    tare_scope by_hand;
    int sum = many(n, 1, 2, 3, 4, 5, 6, 7, 8);
    TARE_SCOPE("a");
    sum += many(1, n, 2, 3, 4, 5, 6, 7, sum) + many(1, 2, n, 3, 4, 5, sum, 7, 8);
    TARE_SCOPE("b");
    if (site) tare_begin(&by_hand, site);
    sum += many(1, 2, 3, n, 4, 5, 6, sum, 8);
    {
        TARE_SCOPE("c");
        sum += many(1, 2, 3, 4, n, 5, 6, 7, sum);
    }
    if (site) tare_end(&by_hand);
    return sum;
}

int main(int argc, char **argv)
{
    tare_site *site = argc > 1 ? tare_site_new(TARE_SITE_SCOPE, argv[1], __FILE__, __LINE__) : NULL;
    int sum = 0;
    for (int i = 0; i < ROUNDS; i++) sum ^= work(i, site);
    printf("%ld\n", calls);
    return sum == 1 << 30;
}

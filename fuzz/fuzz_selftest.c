/* SPDX-License-Identifier: MIT
 * fuzz_selftest.c - selftest_read() on any bytes: what it takes makes sense, and can be written and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/selftest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *host = "h1-0123456789abcdef";
    const int64_t now = 1794732695;
    struct selftest s, again;
    struct buf text = BUF_INIT;
    if (!selftest_read(&s, host, now, (const char *)data, size)) return 0;
    must(s.comparisons > 0 && s.regressed + s.improved <= s.comparisons && s.n_kinds > 0);
    must(s.n_kinds <= SELFTEST_KINDS_MAX && s.rate_lo >= 0 && s.rate_lo <= s.rate_hi && s.rate_hi <= 1);
    for (size_t i = 0; i < s.n_kinds; i++) must(memchr(s.kind[i].name, 0, sizeof s.kind[i].name) != NULL);
    selftest_write(&s, host, now, &text);
    must(selftest_read(&again, host, now, text.data, text.len));
    must(again.comparisons == s.comparisons && again.n_kinds == s.n_kinds);
    buf_release(&text);
    return 0;
}

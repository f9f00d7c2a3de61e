/* SPDX-License-Identifier: MIT
 * fuzz_symbol.c - any bytes as the answer of the child that reads symbols, which a hostile file may have made its own,
 * and as a demangled name. What is taken is frames with text that ends. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "symbol/demangle.h"
#include "symbol/symbol_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = ARENA_INIT;
    struct symbol_place p;
    char *copy = mem_strndup((const char *)data, size);
    must(copy != NULL);
    if (symbol_unpack(&a, (const char *)data, size, &p)) {
        must((p.n > 0) != (p.why != NULL) && p.n <= SYMBOL_FRAMES_MOST);
        for (size_t i = 0; i < p.n; i++)
            must(!p.frames[i].function || strlen(p.frames[i].function) <= size * 64);
    }
    const char *name = demangle_short(&a, copy);
    must(name && strlen(name) <= 2 * size);
    demangle_end();
    mem_free(copy);
    arena_release(&a);
    return 0;
}

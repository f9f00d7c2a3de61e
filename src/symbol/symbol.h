/* SPDX-License-Identifier: MIT
 * symbol.h - which function, file and line an address of a native module is: from its symbols and debug information, by
 * libdw of elfutils, with the functions that were inlined there. The files may be anybody's: they are read in a child
 * process with bounded memory and time, and what cannot be read is unknown, with a reason.
 *
 *     struct symbols *s = symbols_new(NULL, err);
 *     const struct symbol_place *p = symbols_find(s, "/usr/lib/libx.so", "b5a1..", 0x1234);
 *     for (size_t i = 0; i < p->n; i++) .. p->frames[i].function ..
 *     symbols_free(s);
 */
#ifndef SYMBOL_SYMBOL_H
#define SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/error.h"

struct symbol_frame {
    const char *function; /* as people say it: without parameters and template arguments; NULL: unknown */
    const char *full;     /* demangled, whole */
    const char *file;     /* its source; NULL: unknown */
    uint32_t line;        /* 0: unknown */
};

struct symbol_place {
    const struct symbol_frame *frames; /* innermost first; each but the last was inlined into the next */
    size_t n;                          /* 0: unknown, and `why` says why */
    const char *why;
    bool bare; /* the file was read, and has no name for the address */
};

/* One for a report: it remembers what it was asked. `debug_path`: where debug files are looked for, several with ':';
 * NULL: /usr/lib/debug, and beside the module. Not for several threads at once. NULL: no memory. */
struct symbols *symbols_new(const char *debug_path, tare_error *err);
void symbols_free(struct symbols *s);

/* `address`: as in the file (where it was in memory, less the module's bias). For a return address ask for the byte
 * before. `build_id`: in hex; NULL, "" or "-": not known, then whatever has the path now is believed. A file of another
 * build id is not. Lives as long as `s`. Never NULL. */
const struct symbol_place *symbols_find(struct symbols *s, const char *path, const char *build_id,
                                        uint64_t address);

#endif

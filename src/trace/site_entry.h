/* SPDX-License-Identifier: MIT
 * site_entry.h - one site in an EXTENT_SITES of a live file; entries follow one another, 8-byte aligned. */
#ifndef TRACE_SITE_ENTRY_H
#define TRACE_SITE_ENTRY_H

#include <stdint.h>

enum { SITE_NAME_MAX = 1024, SITE_FILE_MAX = 1024 };

struct site_entry {
    uint32_t bytes; /* of the whole entry; written last: 0 ends the list */
    uint32_t index;
    uint32_t line;
    uint16_t kind, name_bytes, file_bytes;
    char text[]; /* name, then file */
};

#endif

/* SPDX-License-Identifier: MIT
 * chunks.h - an archive as its chunks, one after another: checks the file header, then hands out each chunk that passes
 * its checksum and each stretch that is damaged. Knows nothing of what is in a chunk. */
#ifndef TRACE_CHUNKS_H
#define TRACE_CHUNKS_H

#include <stdbool.h>

#include "core/error.h"
#include "core/file.h"
#include "trace/format.h"

struct chunks {
    const struct file_view *file;
    struct archive_header header;
    uint64_t pos;         /* of what comes next */
    uint64_t search_left; /* bytes that may still be checked in vain while looking for the next chunk */
};

struct chunk {
    struct chunk_header header;
    const uint8_t *bytes; /* header.stored_bytes of them, in the file */
    uint64_t pos;
    uint64_t damaged; /* > 0: no chunk at all, this many bytes from pos on make no sense */
};

/* `path` is for the error text. */
tare_status chunks_begin(struct chunks *c, const struct file_view *file, const char *path, tare_error *err);
bool chunks_next(struct chunks *c, struct chunk *out); /* false: the end */

#endif

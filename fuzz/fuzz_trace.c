/* SPDX-License-Identifier: MIT
 * fuzz_trace.c - an archive of any bytes: once as it is, once with the checksums made right, so that damage gets
 * past them into the decoders. */
#include "core/crc.h"
#include "trace/format.h"
#include "walk_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(uint8_t *data, size_t size)
{
    struct chunk_header h;
    for (size_t pos = sizeof(struct archive_header); pos < size && size - pos >= sizeof h;
         pos += sizeof h + h.stored_bytes) {
        memcpy(&h, data + pos, sizeof h);
        h.magic = CHUNK_MAGIC;
        if (h.stored_bytes > size - pos - sizeof h) h.stored_bytes = (uint32_t)(size - pos - sizeof h);
        if (h.codec == CODEC_PLAIN) h.plain_bytes = h.stored_bytes;
        h.crc = 0;
        h.crc = crc32c(crc32c(0, &h, sizeof h), data + pos + sizeof h, h.stored_bytes);
        memcpy(data + pos, &h, sizeof h);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    walk_bytes(data, size);
    uint8_t *copy = malloc(size + 1);
    must(copy != NULL);
    memcpy(copy, data, size);
    mend(copy, size);
    walk_bytes(copy, size);
    free(copy);
    return 0;
}

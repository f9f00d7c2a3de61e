/* SPDX-License-Identifier: MIT
 * mend_trace.h - an archive of any bytes with its checksums made right, so that damage gets past them into the
 * decoders. */
#ifndef FUZZ_MEND_TRACE_H
#define FUZZ_MEND_TRACE_H

#include <stdint.h>
#include <string.h>

#include "core/crc.h"
#include "trace/format.h"

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

#endif

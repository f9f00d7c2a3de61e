/* SPDX-License-Identifier: MIT
 * chunks.c - see chunks.h. Never reads past the file, whatever it says. */
#include "trace/chunks.h"

#include <string.h>

#include "core/crc.h"
#include "core/looks.h"

static bool chunk_at(const struct file_view *f, uint64_t pos, struct chunk_header *h)
{
    if (f->size - pos < sizeof *h) return false;
    memcpy(h, f->data + pos, sizeof *h);
    if (h->magic != CHUNK_MAGIC || h->stored_bytes > CHUNK_BYTES_MAX || h->plain_bytes > CHUNK_BYTES_MAX)
        return false;
    if (h->codec == CODEC_PLAIN && h->plain_bytes != h->stored_bytes) return false;
    if (h->stored_bytes > f->size - pos - sizeof *h) return false;
    uint32_t want = h->crc;
    h->crc = 0;
    bool ok = crc32c(crc32c(0, h, sizeof *h), f->data + pos + sizeof *h, h->stored_bytes) == want;
    h->crc = want;
    return ok;
}

/* The next place at or after `pos` where a whole, intact chunk begins; the size of the file if there is none.
 * A file full of false starts is given up when many times its size was checked in vain. */
static uint64_t resync(struct chunks *c, uint64_t pos)
{
    const struct file_view *f = c->file;
    static const char magic[4] = {'T', 'C', 'H', 'K'};
    struct chunk_header h = {0};
    while (pos < f->size) {
        const unsigned char *p = memmem(f->data + pos, f->size - pos, magic, sizeof magic);
        if (!p) return f->size;
        pos = (uint64_t)(p - f->data);
        if (chunk_at(f, pos, &h)) return pos;
        uint64_t checked =
            h.stored_bytes < CHUNK_BYTES_MAX ? h.stored_bytes : 0; /* else told by its header */
        if (checked > c->search_left) return f->size;
        c->search_left -= checked;
        pos++;
    }
    return f->size;
}

/* A minor version may be newer: chunks of unknown types are skipped. But another major version or an
 * unknown feature bit means that the rest would be misread. header_bytes lets later versions grow the
 * header. */
tare_status chunks_begin(struct chunks *c, const struct file_view *file, const char *path, tare_error *err)
{
    struct archive_header *h = &c->header;
    size_t size = file->size;
    if (size < sizeof h->magic || memcmp(file->data, ARCHIVE_MAGIC, sizeof h->magic) != 0) {
        const char *other = looks_like(file->data, size, LOOKS_TRACE);
        return error_set(err, TARE_FORMAT, "%s: not a tare trace: %s", path,
                         other ? other : "it does not begin as a trace does");
    }
    if (size < sizeof *h)
        return error_set(err, TARE_FORMAT, "%s: truncated in the file header, after %zu bytes", path, size);
    memcpy(h, file->data, sizeof *h);
    if (h->major != TRACE_MAJOR)
        return error_set(err, TARE_FORMAT, "%s: trace version %u.%u, this tare reads version %d", path,
                         h->major, h->minor, TRACE_MAJOR);
    if (h->features & ~FEATURES_KNOWN)
        return error_set(err, TARE_FORMAT, "%s: made with features this tare does not know (bits %#llx)",
                         path, (unsigned long long)(h->features & ~FEATURES_KNOWN));
    if (h->header_bytes < sizeof *h || h->header_bytes > size)
        return error_set(err, TARE_FORMAT, "%s: the file header claims %u bytes, the file has %zu", path,
                         h->header_bytes, size);
    h->run_id[sizeof h->run_id - 1] = 0;
    c->file = file;
    c->pos = h->header_bytes;
    c->search_left = 64 * (uint64_t)size;
    return TARE_OK;
}

bool chunks_next(struct chunks *c, struct chunk *out)
{
    const struct file_view *f = c->file;
    if (c->pos >= f->size) return false;
    *out = (struct chunk){.pos = c->pos};
    if (!chunk_at(f, c->pos, &out->header)) {
        c->pos = resync(c, c->pos);
        out->damaged = c->pos - out->pos;
        return true;
    }
    out->bytes = f->data + c->pos + sizeof out->header;
    c->pos += sizeof out->header + out->header.stored_bytes;
    return true;
}

/* SPDX-License-Identifier: MIT
 * fuzz_live.c - a live file of any bytes, folded into an archive in memory, which is then read. So that inputs stay
 * small, the first 256 bytes stand for the whole 8 KiB header; extents follow. */
#include "core/crc.h"
#include "trace/fold.h"
#include "walk_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 256, OUT_MAX = 64 << 20 };

struct out {
    uint8_t *bytes;
    size_t n;
};

static bool keep(void *ctx, enum chunk_type type, uint64_t process, const void *payload, size_t bytes)
{
    struct out *o = ctx;
    struct chunk_header h = {.magic = CHUNK_MAGIC, .type = (uint16_t)type, .process = process};
    h.stored_bytes = h.plain_bytes = (uint32_t)bytes;
    h.crc = crc32c(crc32c(0, &h, sizeof h), payload, bytes);
    must(o->n + sizeof h + bytes < OUT_MAX); /* more than any input here may become */
    memcpy(o->bytes + o->n, &h, sizeof h);
    memcpy(o->bytes + o->n + sizeof h, payload, bytes);
    o->n += sizeof h + bytes;
    return true;
}

static void fold_all(const uint8_t *live, size_t size, struct out *o)
{
    struct archive_header h = {.major = TRACE_MAJOR, .minor = TRACE_MINOR, .header_bytes = sizeof h};
    memcpy(h.magic, ARCHIVE_MAGIC, sizeof h.magic);
    memcpy(o->bytes, &h, sizeof h);
    o->n = sizeof h;
    struct fold *f = calloc(1, sizeof *f);
    must(f != NULL);
    f->base = (const char *)live;
    f->bytes = size;
    f->emit = keep;
    f->ctx = o;
    if (fold_process(f)) fold_rest(f);
    free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t head = size < HEAD ? size : HEAD, rest = size - head;
    uint8_t *live = calloc(1, LIVE_HEADER_BYTES + rest);
    static struct out out;
    if (!out.bytes)
        out.bytes =
            mmap(NULL, OUT_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(live != NULL && out.bytes != MAP_FAILED);
    memcpy(live, data, head);
    memcpy(live + LIVE_HEADER_BYTES, data + head, rest);
    struct live_header *h = (struct live_header *)(void *)live;
    memcpy(h->magic, LIVE_MAGIC, sizeof h->magic);
    h->major = TRACE_MAJOR;
    h->header_bytes = sizeof *h;
    if (h->used < LIVE_HEADER_BYTES) h->used = LIVE_HEADER_BYTES + rest;
    if (fold_valid(live, LIVE_HEADER_BYTES + rest)) {
        fold_all(live, LIVE_HEADER_BYTES + rest, &out);
        walk_bytes(out.bytes, out.n);
    }
    free(live);
    return 0;
}

/* SPDX-License-Identifier: MIT
 * stored.c - see stored.h. */
#include "core/stored.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "core/crc.h"

enum { VERSION = 1 };

static uint32_t head_sum(const struct stored_head *h)
{
    return crc32c(0, h, offsetof(struct stored_head, sum));
}

static bool is_none(const struct stored_head *h)
{
    return memcmp(h->codec, "none\0\0\0", sizeof h->codec) == 0;
}

tare_status stored_head_make(struct stored_head *out, const char *codec, const char *kind,
                             const struct codec_bytes *raw, const struct codec_bytes *packed)
{
    struct stored_head h = {.magic = STORED_MAGIC, .raw = raw->n, .packed = packed->n, .version = VERSION};
    if (strlen(codec) > sizeof h.codec || strlen(kind) > sizeof h.kind) return TARE_INVALID;
    memcpy(h.codec, codec, strlen(codec));
    memcpy(h.kind, kind, strlen(kind));
    h.raw_sum = crc32c(0, raw->data, raw->n);
    h.packed_sum = crc32c(0, packed->data, packed->n);
    h.sum = head_sum(&h);
    *out = h;
    return TARE_OK;
}

static const unsigned char *body_of(const struct codec_bytes *file)
{
    return (const unsigned char *)file->data + sizeof(struct stored_head);
}

tare_status stored_read(const struct codec_bytes *file, const char *name, struct stored_head *out,
                        tare_error *err)
{
    struct stored_head h;
    if (file->n < sizeof h || memcmp(file->data, STORED_MAGIC, sizeof h.magic) != 0)
        return error_set(err, TARE_FORMAT, "%s: was not written by optimize_data_storage()", name);
    memcpy(&h, file->data, sizeof h);
    if (h.sum != head_sum(&h))
        return error_set(err, TARE_FORMAT, "%s: its first %zu bytes are damaged (checksum)", name, sizeof h);
    if (h.version != VERSION)
        return error_set(err, TARE_FORMAT, "%s: was written as version %u, this tare reads version %d", name,
                         h.version, VERSION);
    size_t n = file->n - sizeof h;
    if (n != h.packed)
        return error_set(err, TARE_FORMAT,
                         "%s: has %zu bytes of data, %llu were written: it is cut or was added to", name, n,
                         (unsigned long long)h.packed);
    if (crc32c(0, body_of(file), n) != h.packed_sum || (is_none(&h) && h.raw != h.packed))
        return error_set(err, TARE_FORMAT, "%s: its data is damaged (checksum)", name);
    *out = h;
    return TARE_OK;
}

tare_status stored_unpack(const struct codec_bytes *file, const char *name, const struct stored_head *head,
                          void *to, tare_error *err)
{
    struct codec_bytes body = {body_of(file), file->n - sizeof *head};
    tare_status s = TARE_OK;
    if (is_none(head)) {
        memcpy(to, body.data, body.n);
    } else {
        char codec[sizeof head->codec + 1] = "";
        tare_error why = TARE_ERROR_INIT;
        memcpy(codec, head->codec, sizeof head->codec);
        const struct codec *c = codec_find(codec, &why);
        if (!c) return error_set(err, TARE_FORMAT, "%s: is packed with %s", name, why.text);
        s = codec_unpack(c, body, to, head->raw);
    }
    if (s < 0 || crc32c(0, to, head->raw) != head->raw_sum)
        return error_set(err, TARE_FORMAT, "%s: its data is damaged (checksum)", name);
    return TARE_OK;
}

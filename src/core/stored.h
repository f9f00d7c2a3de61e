/* SPDX-License-Identifier: MIT
 * stored.h - a file of stored data: a head that says how its body is packed and what kind of data it is, with
 * checksums of everything. A reader is told what is wrong and where before anything is done with the bytes. */
#ifndef CORE_STORED_H
#define CORE_STORED_H

#include <stdint.h>

#include "core/codec.h"

struct stored_head { /* at the start of the file, as it is in memory: little-endian */
    char magic[8];
    char codec[8]; /* of codec.h, or "none"; zeros behind it */
    char kind[8];  /* the caller's word for what it is */
    uint64_t raw, packed;
    uint32_t raw_sum, packed_sum; /* crc32c of the data unpacked, and of what follows the head */
    uint32_t version;
    uint32_t sum; /* of the head up to here */
};
_Static_assert(sizeof(struct stored_head) == 56, "files of version 1 have a head of 56 bytes");
#define STORED_MAGIC "TAREDATA"

/* Of data that `packed` is the packed form of. The words have 8 bytes at most. */
tare_status stored_head_make(struct stored_head *out, const char *codec, const char *kind,
                             const struct codec_bytes *raw, const struct codec_bytes *packed);

/* The head of a whole file. TARE_FORMAT with the reason where it is damaged, cut, or was added to. */
tare_status stored_read(const struct codec_bytes *file, const char *name, struct stored_head *out,
                        tare_error *err);

/* The data of a file whose head was read, into head->raw bytes. */
tare_status stored_unpack(const struct codec_bytes *file, const char *name, const struct stored_head *head,
                          void *to, tare_error *err);

#endif

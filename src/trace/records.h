/* SPDX-License-Identifier: MIT
 * records.h - typed records in chunks, to bytes and back: one loop each over a row of codings, which a table such as
 * gpu_records.def gives. A field is a varint, or the difference to the last field of the same coding in the chunk. */
#ifndef TRACE_RECORDS_H
#define TRACE_RECORDS_H

#include "trace/wire.h"

enum { RECORD_DIFFERENCES = 4, RECORD_FIELDS = 12 };
enum {
    RECORD_UINT = RECORD_DIFFERENCES,
    RECORD_NONE
}; /* codings below are differences, each of its own kind */

/* A text behind the fields, if the kind has one. */
struct record_text {
    const char *text;
    size_t bytes, most;
};

/* Works on copies and takes them over only when all fit: a record that is half written would spoil the differences of
 * all that follow. False, and nothing is written, when there is no room. */
static inline bool record_pack(uint64_t last[RECORD_DIFFERENCES], struct enc *to, const uint8_t *codings,
                               const uint64_t *v, const struct record_text *text)
{
    uint64_t now[RECORD_DIFFERENCES];
    struct enc e = *to;
    memcpy(now, last, sizeof now);
    for (size_t i = 0; codings[i] != RECORD_NONE; i++) {
        unsigned coding = codings[i];
        if (coding == RECORD_UINT) {
            enc_uint(&e, v[i]);
        } else {
            enc_int(&e, (int64_t)(v[i] - now[coding]));
            now[coding] = v[i];
        }
    }
    if (text) enc_str(&e, text->text, text->bytes < text->most ? text->bytes : text->most);
    if (e.full) return false;
    memcpy(last, now, sizeof now);
    *to = e;
    return true;
}

/* The fields; d->failed where they end too early. */
static inline void record_unpack(uint64_t last[RECORD_DIFFERENCES], struct dec *d, const uint8_t *codings,
                                 uint64_t *v)
{
    for (size_t i = 0; codings[i] != RECORD_NONE; i++) {
        unsigned coding = codings[i];
        v[i] = coding == RECORD_UINT ? dec_uint(d) : (last[coding] += (uint64_t)dec_int(d));
    }
}

#endif

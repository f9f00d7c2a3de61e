/* SPDX-License-Identifier: MIT
 * json_pull.h - JSON read piece by piece from a stream, for files larger than memory: the caller asks for the next
 * token. Memory is bounded by the longest text that is kept and the depth, whatever the file is. Never trusts a byte;
 * errors name the file, the line and the byte. A document of a sane size is read with jansson (run_read.c) instead. */
#ifndef CORE_JSON_PULL_H
#define CORE_JSON_PULL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buf.h"

enum pull_token {
    PULL_DONE, /* the one value was complete, and nothing follows it */
    PULL_OBJECT,
    PULL_OBJECT_END,
    PULL_ARRAY,
    PULL_ARRAY_END,
    PULL_KEY,    /* its text; the value comes next */
    PULL_STRING, /* its text */
    PULL_NUMBER, /* its text, as in the file: the caller knows what precision it needs */
    PULL_TRUE,
    PULL_FALSE,
    PULL_NULL /* also NaN and Infinity, which some programs write though JSON has no word for them */
};

enum { JSON_PULL_DEPTH = 256, JSON_PULL_ROOM = 64 << 10 };

/* Up to `room` bytes; *n 0: the end. */
typedef tare_status json_source_fn(void *ctx, void *bytes, size_t room, size_t *n, tare_error *err);

struct json_source {
    const char *name; /* of the file, for errors; borrowed */
    json_source_fn *read;
    void *ctx;
};

struct json_pull {
    struct json_source from;
    size_t text_most; /* of a text that is kept; the rest of a longer one is dropped */
    struct buf
        text; /* of the last key, string or number; NUL-terminated UTF-8, as far as it was in the file */
    bool cut; /* that text was longer */
    /* within */
    char *room;
    size_t at, n;
    uint64_t before, line; /* bytes before room[0]; newlines so far */
    unsigned depth;
    uint8_t closes[JSON_PULL_DEPTH]; /* '}' or ']' of each level */
    uint8_t expect;
    bool skipping; /* texts are checked, not kept */
};

/* `text_most` bounds the memory. Release also after a failure. */
tare_status json_pull_init(struct json_pull *p, struct json_source from, size_t text_most, tare_error *err);
void json_pull_release(struct json_pull *p);

/* TARE_FORMAT: what the file has here is no JSON. After a failure nothing more can be read. */
tare_status json_pull_next(struct json_pull *p, enum pull_token *out, tare_error *err);

/* The rest of a value whose first token was just read: nothing where that was all of it. */
tare_status json_pull_skip(struct json_pull *p, enum pull_token first, tare_error *err);

/* An error at the place that was read last: "file: line 3, byte 120: .." */
tare_status json_pull_error(const struct json_pull *p, tare_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The text of a number times 10^decimals, rounded towards zero; false: no number, or out of range. */
bool json_pull_scaled(const char *text, unsigned decimals, int64_t *out);

#endif

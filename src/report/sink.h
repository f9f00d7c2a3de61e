/* SPDX-License-Identifier: MIT
 * sink.h - where the bytes of a report go. A format writes into a stream; the stream hands full pieces
 * to a sink (a file, stdout, a buf), so that an export of any length needs the same small memory.
 * A file appears under its name only when it is whole (core/file.h). */
#ifndef REPORT_SINK_H
#define REPORT_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/file.h"

struct sink {
    tare_status (*write)(void *ctx, const void *bytes, size_t n, tare_error *err);
    void *ctx;
};

struct sink sink_to_buf(struct buf *b);       /* everything is kept: small results and tests */
struct sink sink_to_file(struct file_out *f); /* which the caller commits */

/* ---- how it may look ---- */

/* What a terminal may be told; "" where it may not. */
struct report_style {
    const char *bold, *dim, *plain;
    bool utf8;
    const char *good, *warn, *bad; /* of verdicts and severities */
    unsigned width; /* of the terminal, for tables and sentences to fit; 0: as long as they are */
};
#define REPORT_STYLE_NONE {"", "", "", false, "", "", "", 0}

/* ---- the stream ---- */

struct stream {
    struct sink to;
    struct buf out;     /* writers add here, then call stream_poll() */
    uint64_t written;   /* bytes handed to the sink */
    tare_status status; /* sticky: after a failure nothing more is written */
    tare_error *err;
    struct report_style style; /* none, unless whoever opened it knows that a terminal reads it */
};

#define STREAM_PIECE ((size_t)64 << 10)

void stream_init(struct stream *s, struct sink to, tare_error *err); /* without a style */
tare_status stream_flush(struct stream *s);
tare_status stream_finish(struct stream *s); /* flush and release; the status of the whole stream */

/* Call after each item: flushes when a piece is full. Non-zero: stop writing. */
static inline tare_status stream_poll(struct stream *s)
{
    return s->out.len < STREAM_PIECE && !s->out.failed ? s->status : stream_flush(s);
}

/* How a writer ended: its failure is the stream's, unless that has one already. Polls. */
tare_status stream_end(struct stream *s, tare_status status);

/* Decimal digits; many times faster than buf_printf, which matters a hundred million times. */
void stream_add_uint(struct stream *s, uint64_t v);
void stream_add_int(struct stream *s, int64_t v);

#endif

/* SPDX-License-Identifier: MIT
 * packed.c - a trace as a trace: one closed, compressed file of whatever it was made of, to keep or to send.
 * Adds and leaves out nothing that could be read. */
#include "report/export/export.h"
#include "trace/reader.h"

static tare_status add(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    struct stream *s = ctx;
    (void)err; /* the stream has its own, and it is the same */
    buf_add(&s->out, bytes, n);
    return stream_poll(s);
}

static tare_status packed_write(struct stream *s, const struct export_input *in)
{
    return stream_end(s, trace_repack(in->trace, add, s, s->err));
}

const struct export_format export_tare = {
    .name = "tare",
    .extension = ".packed.tare",
    .help = "one closed, compressed trace, also of a killed program",
    .flags = EXPORT_BINARY,
    .write = packed_write,
};

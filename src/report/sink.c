/* SPDX-License-Identifier: MIT
 * sink.c - see sink.h. */
#include "report/sink.h"

/* ---- into memory ---- */

static tare_status write_buf(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    struct buf *b = ctx;
    buf_add(b, bytes, n);
    return buf_status(b, err);
}

struct sink sink_to_buf(struct buf *b)
{
    return (struct sink){write_buf, b};
}

/* ---- into a file ---- */

static tare_status write_file(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    struct file_out *f = ctx;
    return file_write_all(f->fd, bytes, n, f->name, err);
}

struct sink sink_to_file(struct file_out *f)
{
    return (struct sink){write_file, f};
}

/* ---- the stream ---- */

void stream_init(struct stream *s, struct sink to, tare_error *err)
{
    *s = (struct stream){.to = to, .out = BUF_INIT, .err = err, .style = REPORT_STYLE_NONE};
}

tare_status stream_flush(struct stream *s)
{
    if (s->status == TARE_OK && s->out.failed) s->status = buf_status(&s->out, s->err);
    if (s->status == TARE_OK && s->out.len > 0)
        s->status = s->to.write(s->to.ctx, s->out.data, s->out.len, s->err);
    if (s->status == TARE_OK) s->written += s->out.len;
    buf_clear(&s->out);
    return s->status;
}

tare_status stream_end(struct stream *s, tare_status status)
{
    if (status < 0 && s->status == TARE_OK) s->status = status;
    return stream_poll(s);
}

tare_status stream_finish(struct stream *s)
{
    stream_flush(s);
    buf_release(&s->out);
    return s->status;
}

void stream_add_uint(struct stream *s, uint64_t v)
{
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + v % 10);
    while (v /= 10);
    buf_add(&s->out, digits + at, sizeof digits - at);
}

void stream_add_int(struct stream *s, int64_t v)
{
    if (v < 0) buf_add_char(&s->out, '-');
    stream_add_uint(s, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

/* SPDX-License-Identifier: MIT
 * buf.c - see buf.h. */
#include "core/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/mem.h"

char buf_empty[1];

void buf_release(struct buf *b)
{
    if (b->cap) mem_free(b->data);
    *b = (struct buf)BUF_INIT;
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->failed = 0;
    if (b->cap) b->data[0] = 0;
}

int buf_reserve(struct buf *b, size_t more)
{
    if (b->failed) return -1;
    if (more < b->cap - b->len) return 0; /* one byte stays for the NUL */
    size_t want = b->cap ? b->cap * 2 : 64;
    if (more >= SIZE_MAX / 2 - b->len) goto fail;
    if (want < b->len + more + 1) want = b->len + more + 1;
    char *data = mem_resize(b->cap ? b->data : NULL, want, 1);
    if (!data) goto fail;
    data[b->len] = 0;
    b->data = data;
    b->cap = want;
    return 0;
fail:
    b->failed = 1;
    return -1;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
    if (n == 0 || buf_reserve(b, n) < 0) return;
    memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = 0;
}

void buf_add_str(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_add_char(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *format, va_list ap)
{
    char small[256];
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof small, format, ap);
    if (n < 0) {
        b->failed = 1;
    } else if ((size_t)n < sizeof small) {
        buf_add(b, small, (size_t)n);
    } else if (buf_reserve(b, (size_t)n) == 0) {
        vsnprintf(b->data + b->len, (size_t)n + 1, format, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    buf_vprintf(b, format, ap);
    va_end(ap);
}

char *buf_take(struct buf *b)
{
    char *data = NULL;
    if (!b->failed && buf_reserve(b, 0) == 0) {
        data = b->data;
        *b = (struct buf)BUF_INIT;
    }
    buf_release(b);
    return data;
}

tare_status buf_status(const struct buf *b, tare_error *err)
{
    return b->failed ? error_nomem(err, "a text of %zu bytes", b->len) : TARE_OK;
}

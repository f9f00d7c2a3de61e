/* SPDX-License-Identifier: MIT
 * buf.h - growable bytes, always followed by a NUL. Failure is sticky: once an allocation fails every
 * later add does nothing, so a writer checks buf_status() once at its end. */
#ifndef CORE_BUF_H
#define CORE_BUF_H

#include <stdarg.h>

#include "core/error.h"

struct buf {
    char *data; /* never NULL after BUF_INIT: points to "" while empty */
    size_t len, cap;
    int failed;
};

extern char buf_empty[1];
#define BUF_INIT {buf_empty, 0, 0, 0}

void buf_release(struct buf *b);
void buf_clear(struct buf *b);               /* keeps the memory, forgets a failure */
int buf_reserve(struct buf *b, size_t more); /* 0, or -1 and b->failed */
void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_add_str(struct buf *b, const char *s);
void buf_add_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *format, va_list ap) __attribute__((format(printf, 2, 0)));
char *buf_take(struct buf *b); /* hands the memory out (mem_free it); NULL if failed */
tare_status buf_status(const struct buf *b, tare_error *err);

#endif

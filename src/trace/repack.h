/* SPDX-License-Identifier: MIT
 * repack.h - one closed, compressed file out of whatever a trace is made of: an archive, the live files of
 * killed programs, chunks written twice. What the reader understood is what the copy holds. */
#ifndef TRACE_REPACK_H
#define TRACE_REPACK_H

#include "trace/reader.h"

typedef tare_status repack_write(void *ctx, const void *bytes, size_t n, tare_error *err);

tare_status trace_repack(struct trace *t, repack_write *write, void *ctx, tare_error *err);

#endif

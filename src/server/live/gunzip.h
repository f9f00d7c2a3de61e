/* SPDX-License-Identifier: MIT
 * gunzip.h - a body that came packed by gzip, unpacked up to a limit: what would be larger is refused before it is.
 * Pure. */
#ifndef SERVER_GUNZIP_H
#define SERVER_GUNZIP_H

#include "core/buf.h"

/* Adds to *out. TARE_FORMAT: no gzip, damaged, cut short, or more follows; TARE_INVALID: more than `most` bytes. */
tare_status gunzip(struct buf *out, const void *bytes, size_t n, size_t most, tare_error *err);

#endif

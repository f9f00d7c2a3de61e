/* SPDX-License-Identifier: MIT
 * roof_cache.h - a roof kept in a file, because measuring it takes a second. A file that is damaged, too old, or of
 * another host, number of threads or version of the kernels is no value, and never an error. Private to src/probe. */
#ifndef PROBE_ROOF_CACHE_H
#define PROBE_ROOF_CACHE_H

#include "core/buf.h"
#include "probe/roof.h"

enum { ROOF_DAYS_MAX = 30 };

/* The text of the file, and back. `now` is in seconds of the wall clock. */
void roof_cache_write(const struct roof *r, const char *fingerprint, int64_t now, struct buf *out);
bool roof_cache_read(struct roof *out, const struct roof_options *o, int64_t now, const char *text, size_t n);

bool roof_cache_load(struct roof *out, const struct roof_options *o);
void roof_cache_save(const struct roof *r, const struct roof_options *o);

#endif

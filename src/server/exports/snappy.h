/* SPDX-License-Identifier: MIT
 * snappy.h - bytes in Snappy's block format, as Prometheus' remote write wants them. Packing only. Pure. */
#ifndef SERVER_SNAPPY_H
#define SERVER_SNAPPY_H

#include "core/buf.h"

void snappy_pack(struct buf *out, const void *bytes, size_t n); /* failure is the buf's; n below 4 GiB */

#endif

/* SPDX-License-Identifier: MIT
 * inflow.h - the bytes of a file in order, unpacked on the way where it is a gzip file: what it begins with tells, not
 * its name. Bounded memory. */
#ifndef IMPORT_INFLOW_H
#define IMPORT_INFLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

struct inflow;
tare_status inflow_open(struct inflow **out, const char *path, tare_error *err);
/* The same of bytes in memory; borrowed. `name` is for errors. */
tare_status inflow_of(struct inflow **out, const char *name, const void *bytes, size_t n, tare_error *err);
void inflow_close(struct inflow *f); /* NULL is fine */

/* Up to `room` bytes; *n 0: the end. A json_source_fn; ctx is the inflow. TARE_FORMAT: the gzip file is damaged or cut
 * off, and the error says where. */
tare_status inflow_read(void *ctx, void *bytes, size_t room, size_t *n, tare_error *err);

#endif

/* SPDX-License-Identifier: MIT
 * file_facts.h - what decides how a file is best read: its size, how much of it is in memory already, on what it
 * lies, and whether it is packed. Asks the kernel; reads the first bytes and nothing more. */
#ifndef PROBE_FILE_FACTS_H
#define PROBE_FILE_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

struct fs_kind {
    long magic;
    const char *name;
    bool local; /* a shared mapping reaches the file even when the program is killed, at memory speed */
};
const struct fs_kind *fs_kind_of(long magic); /* statfs's f_type; "unknown", taken as local, for others */

struct resident {
    double share;   /* of the range, in memory now; NAN: unknown */
    const char *by; /* the call that told, or why none did */
};
/* cachestat(2), or mincore(2) where the kernel is older. An empty range: unknown. */
struct resident file_resident(int fd, uint64_t offset, uint64_t n);

struct file_facts {
    uint64_t size;
    struct resident resident;
    const struct fs_kind *fs;
    const char *packed; /* "gzip", "zstd", ..: by its first bytes; NULL: no sign of it */
};
/* Of an open regular file; `name` is for the error text. */
tare_status file_facts_read(int fd, const char *name, struct file_facts *out, tare_error *err);

#endif

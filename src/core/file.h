/* SPDX-License-Identifier: MIT
 * file.h - whole files: written so that a reader sees the old content or the new, never half; and mapped
 * to be read. A temporary file is left behind only by a process that is killed; a later writer in that folder removes
 * it. */
#ifndef CORE_FILE_H
#define CORE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "core/error.h"

enum file_write_flags {
    FILE_NO_REPLACE = 1, /* fail when something of that name is already there, also if it appears meanwhile */
    FILE_SHARED = 2      /* its user named it, to give it to others: the umask decides who may read it */
};

/* Write n bytes to `path`: a temporary file beside it, synced, then renamed over it, then the folder synced.
 * It is its owner's alone (0600), or with FILE_SHARED 0666 less the umask. A symbolic link is followed, so its target
 * is replaced and the link stays. What is there but is no regular file (a pipe, a device, /dev/stdout) is
 * written in place. On failure the old file is untouched, with one exception: when only the last step, the
 * sync of the folder, fails, the new file is there but may not outlive a power cut. */
tare_status file_write_atomic(const char *path, const void *bytes, size_t n, unsigned flags, tare_error *err);

/* Write all n bytes, however many calls that takes. `name` is for the error text. */
tare_status file_write_all(int fd, const void *bytes, size_t n, const char *name, tare_error *err);

/* Make a folder and those above it that are missing; one that is there already is fine. */
tare_status file_make_folders(const char *path, tare_error *err);

/* ---- reading ---- */

struct file_view {
    const unsigned char *data;
    size_t size;
};
#define FILE_VIEW_INIT \
    {                  \
        NULL, 0        \
    }

/* Map a whole regular file, read-only and private. TARE_IO when it is missing or not readable, TARE_INVALID
 * when it is a folder or no regular file, TARE_FORMAT when it is empty. Reading past the end of a file that
 * is truncated while mapped raises SIGBUS. */
tare_status file_map(const char *path, struct file_view *out, tare_error *err);
void file_unmap(struct file_view *view); /* an empty view is fine */

/* ---- for tests: the system calls of file_write_atomic, replaceable one by one ---- */

struct file_io {
    ssize_t (*write)(int fd, const void *bytes, size_t n);
    int (*fsync)(int fd);
    int (*rename)(int folder, const char *from, const char *to, unsigned flags); /* renameat2 in one folder */
};
extern struct file_io file_io;              /* what is used */
extern const struct file_io file_io_system; /* what it is reset to: file_io = file_io_system */

#endif

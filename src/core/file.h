/* SPDX-License-Identifier: MIT
 * file.h - whole files: written so that a reader sees the old content or the new, never half; and mapped
 * to be read. Where the file system has files without a name, a killed writer leaves nothing; elsewhere its
 * temporary file is removed by a later writer in that folder. */
#ifndef CORE_FILE_H
#define CORE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/error.h"

enum file_write_flags {
    FILE_NO_REPLACE = 1, /* fail when something of that name is already there, also if it appears meanwhile */
    FILE_SHARED = 2      /* its user named it, to give it to others: the umask decides who may read it */
};

/* A file on its way to its name: written piece by piece with file_write_all(f.fd, ...), there as a whole or not at
 * all: synced, then renamed to `path`, then the folder synced. It is its owner's alone (0600), or with FILE_SHARED 0666
 * less the umask. A symbolic link is followed, so its target is replaced and the link stays. What is there but is no
 * regular file (a pipe, a device, /dev/stdout) is written in place. On failure the old file is untouched, with one
 * exception: when only the last step, the sync of the folder, fails, the new file is there but may not outlive a
 * power cut. */
struct file_out {
    const char *name; /* as the caller gave it, for messages; borrowed */
    int fd, folder;   /* -1: none. Without a folder it is written in place */
    unsigned flags;
    size_t base;         /* its name begins there in `path`; the folder's ends before */
    char path[PATH_MAX]; /* links followed; copied: PATH_MAX bounds what the kernel takes anyway */
    char temp[32];       /* its name until the commit; "": none */
};
#define FILE_OUT_INIT {.fd = -1, .folder = -1}

tare_status file_out_open(struct file_out *f, const char *path, unsigned flags, tare_error *err);
tare_status file_out_commit(struct file_out *f, tare_error *err);
void file_out_close(struct file_out *f); /* without a commit before it nothing is left; twice is fine */

/* All of it at once. */
tare_status file_write_atomic(const char *path, const void *bytes, size_t n, unsigned flags, tare_error *err);

/* Write all n bytes, however many calls that takes. `name` is for the error text. */
tare_status file_write_all(int fd, const void *bytes, size_t n, const char *name, tare_error *err);

/* Make a folder and those above it that are missing; one that is there already is fine. */
/* A file, called without a folder, in the working folder: what users mean who forget the ./ of a command. */
bool file_is_here(const char *name);
tare_status file_make_folders(const char *path, tare_error *err);

/* Whether somebody else may have put it there for the user to find: in a folder where everybody may write, such as
 * /tmp, it belongs neither to the user nor to root nor to the folder's owner. Of a link it is the link that counts.
 * What is not there is nobody's. */
bool file_is_strangers(const char *path);

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

/* ---- for tests: the system calls of file_out and file_write_atomic, replaceable one by one ---- */

struct file_io {
    int (*unnamed)(int folder, mode_t mode); /* open a file that has no name yet */
    ssize_t (*write)(int fd, const void *bytes, size_t n);
    int (*fsync)(int fd);
    int (*rename)(int folder, const char *from, const char *to, unsigned flags); /* renameat2 in one folder */
};
extern struct file_io file_io;              /* what is used */
extern const struct file_io file_io_system; /* what it is reset to: file_io = file_io_system */

#endif

/* SPDX-License-Identifier: MIT
 * files.h - reading files with more than one request under way: threads, threads past the page cache (O_DIRECT), or
 * io_uring past it; and many small files at a time. Knows nothing of Python and takes no lock of it. */
#ifndef PYTHON_FILES_H
#define PYTHON_FILES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/* From `direct` on they are for files that were opened with O_DIRECT. */
#define READ_WAYS(X) X(read) X(threads) X(direct) X(uring)
enum read_way {
#define X(name) READ_##name,
    READ_WAYS(X)
#undef X
        READ_WAY_COUNT
};

enum { READ_ALIGN = 4096, READ_DEPTH_MAX = 128 };

struct read_job {
    int fd;
    uint64_t offset;   /* O_DIRECT: a multiple of READ_ALIGN */
    unsigned char *to; /* need not be aligned */
    size_t n;
    size_t piece;   /* one request; a multiple of READ_ALIGN */
    unsigned depth; /* requests under way */
};

/* All of it or an error; a file that has become shorter meanwhile is one. `name` is for the text. */
tare_status read_job_run(const struct read_job *job, enum read_way way, const char *name, tare_error *err);

/* Whether this process cannot use io_uring (an old kernel, a filter of system calls), and why. */
enum { URING_WHY = 120 };
bool uring_refused(char why[static URING_WHY]);
tare_status uring_read(const struct read_job *job, const char *name, tare_error *err);

/* One request of a job: how many bytes of the file it must have. */
static inline size_t read_piece_size(const struct read_job *job, size_t at)
{
    return job->n - at < job->piece ? job->n - at : job->piece;
}
bool read_is_direct(int fd); /* whether it was opened with O_DIRECT */
/* n bytes at `offset`, however many calls that takes; for O_DIRECT `to` is aligned and has room for whole blocks. */
tare_status read_exactly(const struct read_job *job, unsigned char *to, size_t at, const char *name,
                         tare_error *err);

/* ---- many files ---- */

struct small_file {
    const char *path;    /* borrowed */
    unsigned char *data; /* mem_free() */
    size_t size, n;      /* when it was opened; read of it */
    int failed;          /* 0, an errno, or one of: */
};
enum { SMALL_IS_NO_FILE = -1, SMALL_WAS_CUT = -2, SMALL_LATER = -3 };
/* Whole files, `at_a_time` of them. Files that fail say so, each for itself; those that would make more than `most`
 * bytes together with the others are left for later (0: no limit), but never all of them. From SMALL_TOGETHER on they
 * are asked for with io_uring, where there is one: the kernel then hands many to the disk at once, which takes a third
 * of the processor time that a thread for each takes. */
enum { SMALL_TOGETHER = 16 };
void small_files_read(struct small_file *files, size_t n, unsigned at_a_time, size_t most);

struct small_heap { /* what is still to be read, by whoever is free */
    struct small_file *files;
    size_t n;
    atomic_size_t next, bytes;
    size_t most;
    unsigned together; /* asked for in one call */
};
/* The file open and memory for all of it; -1: it has failed. */
int small_open(struct small_heap *h, struct small_file *f);
/* What is not there yet, call by call; then it is closed. */
void small_finish(struct small_file *f, int fd);
void *small_by_thread(void *heap);
void *small_by_uring(void *heap);

#endif

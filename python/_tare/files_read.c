/* SPDX-License-Identifier: MIT
 * files_read.c - see files.h: the threads. Each takes the next piece or the next file until none is left. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/mem.h"
#include "files.h"

/* Runs work(ctx) in `threads` threads, this one among them; fewer where no more can be started. */
static void in_threads(void *(*work)(void *), void *ctx, unsigned threads)
{
    pthread_t started[READ_DEPTH_MAX];
    unsigned n = 0;
    if (threads > READ_DEPTH_MAX) threads = READ_DEPTH_MAX;
    while (n + 1 < threads && pthread_create(&started[n], NULL, work, ctx) == 0) n++;
    work(ctx);
    while (n > 0) pthread_join(started[--n], NULL);
}

/* ---- one file in pieces ---- */

bool read_is_direct(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && flags & O_DIRECT;
}

tare_status read_exactly(const struct read_job *job, unsigned char *to, size_t at, const char *name,
                         tare_error *err)
{
    size_t want = read_piece_size(job, at), got = 0;
    bool direct = read_is_direct(job->fd);
    while (got < want) {
        size_t ask = want - got;
        if (direct) { /* whole blocks, from a block's start */
            got = got / READ_ALIGN * READ_ALIGN;
            ask = (want - got + READ_ALIGN - 1) / READ_ALIGN * READ_ALIGN;
        }
        struct iovec v = {to + got, ask};
        ssize_t n = preadv2(job->fd, &v, 1, (off_t)(job->offset + at + got), 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return error_errno(err, "%s: reading %zu bytes at %llu", name, ask,
                               (unsigned long long)(job->offset + at + got));
        if (n == 0 || (direct && n < READ_ALIGN && got + (size_t)n < want))
            return error_set(err, TARE_IO, "%s: became shorter while it was read: nothing at byte %llu", name,
                             (unsigned long long)(job->offset + at + got + (size_t)n));
        got += (size_t)n;
    }
    return TARE_OK;
}

struct crew {
    const struct read_job *job;
    const char *name;
    bool direct;        /* the file, whatever the way: whole blocks need room */
    atomic_size_t next; /* byte of the job */
    atomic_int status;  /* of the first that failed */
    tare_error *err;    /* written by it alone */
};

static void crew_fail(struct crew *c, const tare_error *why)
{
    int none = TARE_OK;
    if (atomic_compare_exchange_strong(&c->status, &none, why->status)) *c->err = *why;
}

static void *read_pieces(void *ctx)
{
    struct crew *c = ctx;
    const struct read_job *job = c->job;
    tare_error err = TARE_ERROR_INIT;
    unsigned char *aside = NULL;
    if (c->direct) {
        aside = mmap(NULL, job->piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (aside == MAP_FAILED) {
            error_nomem(&err, "a buffer of %zu bytes", job->piece);
            return crew_fail(c, &err), NULL;
        }
    }
    while (atomic_load(&c->status) == TARE_OK) {
        size_t at = atomic_fetch_add(&c->next, job->piece);
        if (at >= job->n) break;
        if (read_exactly(job, aside ? aside : job->to + at, at, c->name, &err) < 0)
            crew_fail(c, &err);
        else if (aside)
            memcpy(job->to + at, aside, read_piece_size(job, at));
    }
    if (aside) munmap(aside, job->piece);
    return NULL;
}

tare_status read_job_run(const struct read_job *job, enum read_way way, const char *name, tare_error *err)
{
    tare_error own = TARE_ERROR_INIT;
    if (job->n == 0) return TARE_OK;
    if (way == READ_uring) return uring_read(job, name, err);
    struct crew c = {.job = job, .name = name, .direct = read_is_direct(job->fd), .err = &own};
    size_t pieces = (job->n + job->piece - 1) / job->piece;
    unsigned threads = way == READ_read ? 1 : job->depth;
    in_threads(read_pieces, &c, pieces < threads ? (unsigned)pieces : threads);
    if (own.status < 0 && err) *err = own;
    return own.status;
}

/* ---- many files ---- */

struct heap {
    struct small_file *files;
    size_t n;
    atomic_size_t next;
};

static int read_small(int fd, struct small_file *f)
{
    struct stat st;
    if (fstat(fd, &st) < 0) return errno;
    if (S_ISDIR(st.st_mode)) return EISDIR;
    if (!S_ISREG(st.st_mode)) return SMALL_IS_NO_FILE;
    size_t want = (size_t)st.st_size;
    f->data = mem_new(want, 1);
    if (!f->data) return ENOMEM;
    while (f->n < want) {
        ssize_t n = pread(fd, f->data + f->n, want - f->n, (off_t)f->n);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) return SMALL_WAS_CUT;
        f->n += (size_t)n;
    }
    return 0;
}

static void *read_next(void *ctx)
{
    struct heap *h = ctx;
    size_t i;
    while ((i = atomic_fetch_add(&h->next, 1)) < h->n) {
        struct small_file *f = &h->files[i];
        int fd =
            open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer does not hold us */
        f->failed = fd < 0 ? errno : read_small(fd, f);
        if (fd >= 0) close(fd);
    }
    return NULL;
}

void small_files_read(struct small_file *files, size_t n, unsigned threads)
{
    struct heap h = {.files = files, .n = n};
    in_threads(read_next, &h, n < threads ? (unsigned)n : threads);
}

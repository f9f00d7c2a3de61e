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

/* Whether there is room for it among the others. The first always has. */
static bool has_room(struct small_heap *h, size_t size)
{
    size_t before = atomic_fetch_add(&h->bytes, size);
    if (!h->most || !before || (before <= h->most && size <= h->most - before)) return true;
    atomic_fetch_sub(&h->bytes, size);
    return false;
}

int small_open(struct small_heap *h, struct small_file *f)
{
    struct stat st;
    int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer does not hold us */
    if (fd < 0 || fstat(fd, &st) < 0)
        f->failed = errno;
    else if (S_ISDIR(st.st_mode))
        f->failed = EISDIR;
    else if (!S_ISREG(st.st_mode))
        f->failed = SMALL_IS_NO_FILE;
    else if (!has_room(h, (size_t)st.st_size))
        f->failed = SMALL_LATER;
    else if (!(f->data = mem_new((size_t)st.st_size, 1)))
        f->failed = ENOMEM;
    else
        f->size = (size_t)st.st_size;
    if (!f->failed) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

void small_finish(struct small_file *f, int fd)
{
    while (f->n < f->size && !f->failed) {
        ssize_t n = pread(fd, f->data + f->n, f->size - f->n, (off_t)f->n);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) f->failed = errno;
        if (n == 0) f->failed = SMALL_WAS_CUT;
        if (n > 0) f->n += (size_t)n;
    }
    close(fd);
}

void *small_by_thread(void *heap)
{
    struct small_heap *h = heap;
    size_t i;
    while ((i = atomic_fetch_add(&h->next, 1)) < h->n) {
        int fd = small_open(h, &h->files[i]);
        if (fd >= 0) small_finish(&h->files[i], fd);
    }
    return NULL;
}

/* Four rings: while one waits, the files of the others are opened. */
void small_files_read(struct small_file *files, size_t n, unsigned at_a_time, size_t most)
{
    enum { RINGS = 4 };
    char why[URING_WHY];
    struct small_heap h = {.files = files, .n = n, .most = most};
    if (n < at_a_time) at_a_time = (unsigned)n;
    if (at_a_time < SMALL_TOGETHER || uring_refused(why)) {
        in_threads(small_by_thread, &h, at_a_time);
        return;
    }
    h.together = at_a_time / RINGS < READ_DEPTH_MAX ? at_a_time / RINGS : READ_DEPTH_MAX;
    in_threads(small_by_uring, &h, RINGS);
}

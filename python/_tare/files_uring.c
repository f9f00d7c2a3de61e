/* SPDX-License-Identifier: MIT
 * files_uring.c - reading with io_uring by its three system calls: no library is needed, and where the kernel or a
 * filter refuses it, that is said and somebody else reads. */
#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files.h"

struct uring {
    int fd;
    unsigned char *rings, *slots; /* both queues in one mapping; a buffer per request */
    size_t rings_size, slots_size, entries_size;
    struct io_uring_sqe *entries;
    struct io_uring_params p;
    unsigned waiting; /* entries that the kernel has not been told of */
};

static _Atomic unsigned *ring_word(const struct uring *u, unsigned offset)
{
    return (_Atomic unsigned *)(void *)(u->rings + offset);
}

static void uring_close(struct uring *u)
{
    if (u->slots != MAP_FAILED) munmap(u->slots, u->slots_size);
    if (u->entries != MAP_FAILED) munmap(u->entries, u->entries_size);
    if (u->rings != MAP_FAILED) munmap(u->rings, u->rings_size);
    if (u->fd >= 0) close(u->fd);
}

/* 0, or errno. Without a piece there are no buffers: requests bring their own. */
static int uring_open(struct uring *u, unsigned depth, size_t piece)
{
    *u = (struct uring){.rings = MAP_FAILED, .slots = MAP_FAILED, .entries = MAP_FAILED};
    u->fd = (int)syscall(__NR_io_uring_setup, depth, &u->p);
    if (u->fd < 0) return errno;
    size_t sq = u->p.sq_off.array + u->p.sq_entries * sizeof(unsigned);
    size_t cq = u->p.cq_off.cqes + u->p.cq_entries * sizeof(struct io_uring_cqe);
    u->rings_size = sq > cq ? sq : cq;
    u->entries_size = u->p.sq_entries * sizeof(struct io_uring_sqe);
    u->slots_size = depth * piece;
    if (!(u->p.features & IORING_FEAT_SINGLE_MMAP)) return ENOSYS;
    u->rings = mmap(NULL, u->rings_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, u->fd,
                    IORING_OFF_SQ_RING);
    void *entries = mmap(NULL, u->entries_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, u->fd,
                         IORING_OFF_SQES);
    u->entries = entries;
    if (piece)
        u->slots = mmap(NULL, u->slots_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool none = piece && u->slots == MAP_FAILED;
    return u->rings == MAP_FAILED || entries == MAP_FAILED || none ? errno : 0;
}

bool uring_refused(char why[static URING_WHY])
{
    struct uring u;
    int error = uring_open(&u, 1, READ_ALIGN);
    uring_close(&u);
    if (!error) return false;
    snprintf(why, URING_WHY, "io_uring: %s%s", strerror(error),
             error == EPERM || error == ENOSYS ? " (kernel.io_uring_disabled, a filter, or an old kernel)"
                                               : "");
    return true;
}

/* A request in the queue, to be told with the next turn; it is filled in but for its kind. */
static void uring_put(struct uring *u, struct io_uring_sqe what)
{
    _Atomic unsigned *tail = ring_word(u, u->p.sq_off.tail);
    unsigned t = atomic_load_explicit(tail, memory_order_relaxed);
    unsigned i = t & *ring_word(u, u->p.sq_off.ring_mask);
    what.opcode = IORING_OP_READ;
    u->entries[i] = what;
    ring_word(u, u->p.sq_off.array)[i] = i;
    atomic_store_explicit(tail, t + 1, memory_order_release);
    u->waiting++;
}

/* The request for the piece at byte `at` of the job, into buffer `slot`. */
static void uring_ask(struct uring *u, const struct read_job *job, unsigned slot, size_t at)
{
    size_t n = (read_piece_size(job, at) + READ_ALIGN - 1) / READ_ALIGN * READ_ALIGN;
    uring_put(u, (struct io_uring_sqe){.fd = job->fd,
                                       .off = job->offset + at,
                                       .addr = (uintptr_t)(u->slots + slot * job->piece),
                                       .len = (unsigned)n,
                                       .user_data = slot});
}

/* Tells the kernel and waits for so many answers. 0, or errno. */
static int uring_turn(struct uring *u, unsigned answers)
{
    long n = syscall(__NR_io_uring_enter, u->fd, u->waiting, answers, IORING_ENTER_GETEVENTS, NULL, 0);
    if (n < 0) return errno == EINTR || errno == EAGAIN || errno == EBUSY ? 0 : errno;
    u->waiting -= (unsigned)n;
    return 0;
}

struct uring_run {
    struct uring u;
    size_t at[READ_DEPTH_MAX]; /* of the piece in each buffer */
    size_t next;
    unsigned open; /* requests under way */
};

/* What one answer brought goes to its place, and the buffer to the next piece. A short one is read again. */
static tare_status uring_take(struct uring_run *r, const struct read_job *job, const struct io_uring_cqe *c,
                              const char *name, tare_error *err)
{
    unsigned slot = (unsigned)c->user_data;
    unsigned char *from = r->u.slots + slot * job->piece;
    size_t at = r->at[slot], n = read_piece_size(job, at);
    int res = c->res == -EINTR || c->res == -EAGAIN ? 0 : c->res;
    r->open--;
    if (res < 0) {
        errno = -res;
        return error_errno(err, "%s: reading %zu bytes at %llu", name, n,
                           (unsigned long long)(job->offset + at));
    }
    if ((size_t)res < n) {
        tare_status s = read_exactly(job, from, at, name, err);
        if (s < 0) return s;
    }
    memcpy(job->to + at, from, n);
    if (r->next >= job->n) return TARE_OK;
    r->at[slot] = r->next;
    uring_ask(&r->u, job, slot, r->next);
    r->next += job->piece;
    r->open++;
    return TARE_OK;
}

static tare_status uring_answers(struct uring_run *r, const struct read_job *job, const char *name,
                                 tare_error *err)
{
    struct uring *u = &r->u;
    _Atomic unsigned *head = ring_word(u, u->p.cq_off.head);
    const struct io_uring_cqe *answers = (const void *)(u->rings + u->p.cq_off.cqes);
    unsigned h = atomic_load_explicit(head, memory_order_relaxed),
             mask = *ring_word(u, u->p.cq_off.ring_mask);
    tare_status s = TARE_OK;
    while (s == TARE_OK && h != atomic_load_explicit(ring_word(u, u->p.cq_off.tail), memory_order_acquire))
        s = uring_take(r, job, &answers[h++ & mask], name, err);
    atomic_store_explicit(head, h, memory_order_release);
    return s;
}

/* When a piece fails, requests that are still under way write into our buffers: their answers are waited for. */
tare_status uring_read(const struct read_job *job, const char *name, tare_error *err)
{
    struct uring_run r = {.next = 0};
    size_t pieces = (job->n + job->piece - 1) / job->piece;
    unsigned depth = job->depth < 1 ? 1 : job->depth;
    if (depth > READ_DEPTH_MAX) depth = READ_DEPTH_MAX;
    if (pieces < depth) depth = (unsigned)pieces;
    tare_status s = TARE_OK;
    int error = uring_open(&r.u, depth, job->piece);
    if (error) {
        uring_close(&r.u);
        errno = error;
        return error_errno(err, "%s: io_uring", name);
    }
    for (unsigned slot = 0; slot < depth; slot++) {
        r.at[slot] = r.next;
        uring_ask(&r.u, job, slot, r.next);
        r.next += job->piece;
        r.open++;
    }
    while (r.open > 0 && s == TARE_OK && error == 0) {
        error = uring_turn(&r.u, 1);
        s = uring_answers(&r, job, name, err);
    }
    r.next = job->n;
    while (s < 0 && r.open > 0 && uring_turn(&r.u, 1) == 0) uring_answers(&r, job, name, NULL);
    if (r.open > 0)
        r.u.slots = MAP_FAILED; /* the kernel may still write there: never anybody else's memory */
    uring_close(&r.u);
    errno = error;
    return error && s == TARE_OK ? error_errno(err, "%s: io_uring", name) : s;
}

/* ---- many files ---- */

struct small_batch {
    struct small_file *files; /* those of the heap from here on */
    int fd[READ_DEPTH_MAX];   /* -1: not asked for, or it has its answer */
    unsigned n, open;
};

/* Opens them and puts a request for each into the queue. Empty ones need none. */
static void small_ask(struct uring *u, struct small_heap *h, struct small_batch *b)
{
    enum { MOST = 1 << 30 }; /* the rest is read later */
    for (unsigned i = 0; i < b->n; i++) {
        struct small_file *f = &b->files[i];
        b->fd[i] = small_open(h, f);
        if (b->fd[i] < 0) continue;
        if (f->size == 0) {
            small_finish(f, b->fd[i]);
            b->fd[i] = -1;
            continue;
        }
        uring_put(u, (struct io_uring_sqe){.fd = b->fd[i],
                                           .addr = (uintptr_t)f->data,
                                           .len = f->size < MOST ? (unsigned)f->size : MOST,
                                           .user_data = i});
        b->open++;
    }
}

/* An answer that is short or failed is no matter: what is missing is asked for again, and then it is told. */
static void small_answers(struct uring *u, struct small_batch *b)
{
    _Atomic unsigned *head = ring_word(u, u->p.cq_off.head);
    const struct io_uring_cqe *answers = (const void *)(u->rings + u->p.cq_off.cqes);
    unsigned h = atomic_load_explicit(head, memory_order_relaxed),
             mask = *ring_word(u, u->p.cq_off.ring_mask);
    for (; h != atomic_load_explicit(ring_word(u, u->p.cq_off.tail), memory_order_acquire); h++) {
        const struct io_uring_cqe *c = &answers[h & mask];
        struct small_file *f = &b->files[c->user_data];
        if (c->res > 0) f->n = (size_t)c->res;
        small_finish(f, b->fd[c->user_data]);
        b->fd[c->user_data] = -1;
        b->open--;
    }
    atomic_store_explicit(head, h, memory_order_release);
}

/* No answer will come: the kernel may still write into their memory, which is left to it for good. */
static void small_give_up(struct small_batch *b, int error)
{
    for (unsigned i = 0; i < b->n; i++) {
        if (b->fd[i] < 0) continue;
        close(b->fd[i]);
        b->files[i].data = NULL;
        b->files[i].failed = error;
    }
}

void *small_by_uring(void *heap)
{
    struct small_heap *h = heap;
    struct uring u;
    int error = uring_open(&u, h->together, 0);
    for (size_t at; !error && (at = atomic_fetch_add(&h->next, h->together)) < h->n;) {
        struct small_batch b = {.files = h->files + at};
        b.n = h->n - at < h->together ? (unsigned)(h->n - at) : h->together;
        small_ask(&u, h, &b);
        while (b.open > 0 && !error) {
            error = uring_turn(&u, b.open);
            small_answers(&u, &b);
        }
        if (b.open > 0) small_give_up(&b, error);
    }
    uring_close(&u);
    return error ? small_by_thread(heap) : NULL;
}

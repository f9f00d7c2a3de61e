/* SPDX-License-Identifier: MIT
 * live.c - see live.h. Runs inside the traced program: no allocation, no printing, no lock held across a
 * system call other than fallocate. */
#include "trace/live.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/recorder.h"

enum { FIRST_BYTES = 128 << 10, STEP_MAX = 16 << 20 };

/* fallocate where the file system has it; elsewhere write zeros, which reserves as well. */
static int reserve_loudly(int fd, uint64_t from, uint64_t bytes)
{
    while (fallocate(fd, 0, (off_t)from, (off_t)bytes) < 0) {
        if (errno == EINTR) continue;
        if (errno != EOPNOTSUPP && errno != ENOSYS) return -1;
        static const char zeros[4096];
        for (uint64_t done = 0; done < bytes;) {
            size_t n = bytes - done < sizeof zeros ? (size_t)(bytes - done) : sizeof zeros;
            ssize_t w = pwrite(fd, zeros, n, (off_t)(from + done));
            if (w <= 0) return -1;
            done += (uint64_t)w;
        }
        return 0;
    }
    return 0;
}

static int reserve(int fd, uint64_t from, uint64_t bytes)
{
    struct quiet q;
    process_quiet(&q);
    int r = reserve_loudly(fd, from, bytes);
    process_unquiet(&q);
    return r;
}

/* Of a limited address space we take a sixteenth: the rest is the program's. */
static uint64_t fair_room(uint64_t room)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || room <= limit.rlim_cur / 16)
        return room;
    return (limit.rlim_cur / 16) & ~(uint64_t)4095;
}

static tare_status map_room(struct live *l, uint64_t room, tare_error *err)
{
    errno = ENOMEM;
    for (room = fair_room(room); room >= FIRST_BYTES; room /= 2) {
        void *p = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, l->fd, 0);
        if (p == MAP_FAILED) continue;
        madvise(p, room, MADV_DONTFORK); /* a child must not scribble into its parent's record */
        l->base = p;
        l->room = room;
        return TARE_OK;
    }
    return error_errno(err, "%s: cannot map the live trace", l->path);
}

/* Threads of the session before may be in live_alloc() at any time. */
static void install(struct live *l, const struct live *fresh)
{
    while (__atomic_exchange_n(&l->lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
    l->fd = fresh->fd;
    l->dev = fresh->dev;
    l->ino = fresh->ino;
    __atomic_store_n(&l->base, fresh->base, __ATOMIC_RELAXED);
    l->room = fresh->room;
    l->backed = fresh->backed;
    memcpy(l->path, fresh->path, sizeof l->path);
    l->open = true;
    __atomic_store_n(&l->lock, 0, __ATOMIC_RELEASE);
}

tare_status live_open(struct live *l, const char *path, uint64_t room, tare_error *err)
{
    struct live fresh = LIVE_INIT;
    snprintf(fresh.path, sizeof fresh.path, "%s", path);
    fresh.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fresh.fd >= 0) fresh.fd = process_fd(fresh.fd);
    if (fresh.fd < 0) return error_errno(err, "%s: cannot create the live trace", path);
    struct stat st;
    tare_status s;
    if (fstat(fresh.fd, &st) < 0 || reserve(fresh.fd, 0, FIRST_BYTES) < 0) {
        s = error_errno(err, "%s: cannot reserve %d KiB of disk", path, FIRST_BYTES >> 10);
        goto fail;
    }
    fresh.dev = st.st_dev;
    fresh.ino = st.st_ino;
    fresh.backed = FIRST_BYTES;
    s = map_room(&fresh, room, err);
    if (s == TARE_OK) {
        live_header(&fresh)->used = LIVE_HEADER_BYTES;
        install(l, &fresh);
        return TARE_OK;
    }
fail:
    unlink(path);
    close(fresh.fd);
    return s;
}

/* The program may have closed our descriptor and got the number back for a file of its own. */
static int still_ours(const struct live *l)
{
    struct stat st;
    return fstat(l->fd, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino;
}

static int reopen(struct live *l)
{
    int fd = open(l->path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) fd = process_fd(fd);
    if (fd < 0) return -1;
    l->fd = fd; /* the old number is not ours to close */
    if (still_ours(l)) return 0;
    close(fd);
    l->fd = -1;
    return -1;
}

static int grow(struct live *l, uint64_t need)
{
    uint64_t step = l->backed < STEP_MAX ? l->backed : STEP_MAX;
    uint64_t end = l->backed + step;
    if (end < need) end = need;
    if (end > l->room) end = l->room;
    if (end < need) return -1;
    if (!still_ours(l) && reopen(l) < 0) return -1;
    if (reserve(l->fd, l->backed, end - l->backed) < 0) {
        if (end == need || reserve(l->fd, l->backed, need - l->backed) < 0) return -1;
        end = need;
    }
    __atomic_store_n(&l->backed, end, __ATOMIC_RELEASE);
    return 0;
}

struct extent *live_alloc(struct live *l, const char *base, enum extent_type type, uint64_t bytes)
{
    bytes = (bytes + LIVE_ALIGN - 1) / LIVE_ALIGN * LIVE_ALIGN;
    int saved = errno; /* the program's: the end of a scope may stand between its failing call and its look */
    int cancel; /* open and fallocate are where a cancelled thread would end, and leave the lock behind */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    while (__atomic_exchange_n(&l->lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
    struct extent *x = NULL;
    bool ours = l->open && l->base == base;
    struct live_header *h = ours ? live_header(l) : NULL;
    uint64_t at = ours ? h->used : 0;
    if (ours && bytes <= l->room - at && (at + bytes <= l->backed || grow(l, at + bytes) == 0)) {
        x = (struct extent *)(void *)(l->base + at);
        x->bytes = bytes;
        x->type = (uint16_t)type;
        x->magic = EXTENT_MAGIC;
        __atomic_store_n(&h->used, at + bytes, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&l->lock, 0, __ATOMIC_RELEASE);
    pthread_setcancelstate(cancel, NULL);
    errno = saved;
    return x;
}

void live_abandon(struct live *l, int remove_file)
{
    if (!l->base) return;
    while (__atomic_exchange_n(&l->lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
    l->open = false;
    __atomic_store_n(&l->lock, 0, __ATOMIC_RELEASE);
    if (remove_file) unlink(l->path);
    void *p = mmap(l->base, l->room, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    (void)p; /* on failure the file mapping stays, which is as safe */
    if (still_ours(l)) close(l->fd);
    l->fd = -1;
}

void live_disown(struct live *l)
{
    if (l->fd >= 0 && still_ours(l)) close(l->fd);
    *l = (struct live)LIVE_INIT;
}

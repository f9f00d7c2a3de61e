/* SPDX-License-Identifier: MIT
 * live.c - see live.h. Runs inside the traced program: no allocation, no printing, no lock held across a
 * system call other than fallocate. */
#include "trace/live.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/pages.h"
#include "trace/recorder.h"
#include "trace/reserve.h"

enum { FIRST_BYTES = 128 << 10, STEP_MAX = 16 << 20 };

/* How far from the program's own mappings ours lies, and how much address space there is for the sessions to come. */
#define APART ((uint64_t)8 << 40)
#define SPREAD ((uint64_t)8 << 40)

/* ---- pages that are not there ---- */

static bool owns(const char *page)
{
    const struct live *l = &session.live;
    const char *base = __atomic_load_n(&l->base, __ATOMIC_RELAXED);
    return base && l->pid == getpid() && page >= base &&
           page < base + __atomic_load_n(&l->mapped, __ATOMIC_RELAXED);
}

/* The end of a scope that is open now writes to valid addresses; nothing more is recorded. */
static void lost(void)
{
    __atomic_store_n(&session.live.broken, true, __ATOMIC_RELEASE);
    __atomic_store_n(&tare_recording, 0, __ATOMIC_RELAXED);
    drain_abandon();
}

static const struct pages_owner recorder = {owns, lost};

/* ---- the file ---- */

/* Of a limited address space we take a sixteenth: the rest is the program's. */
static uint64_t fair_room(uint64_t room)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || room <= limit.rlim_cur / 16)
        return room;
    return (limit.rlim_cur / 16) & ~(uint64_t)4095;
}

/* Where nobody maps anything: terabytes below what the kernel chooses for everybody. A mapping there can be stretched
 * later, so that only what is in use counts against the program's address space, also if it lowers its limit while it
 * runs. NULL, the kernel's choice, where an address space is too small for that. */
static void *far_place(uint64_t room)
{
    uint64_t from = (uintptr_t)fork_page, each = (room + 0xffff) & ~(uint64_t)0xffff; /* the largest pages */
    if (from < 2 * (APART + SPREAD)) return NULL;
    return (void *)(uintptr_t)(from - APART - session.number % (SPREAD / each) * each);
}

/* Map the file's first bytes where `room` can follow, or all of it at once where such a place is not to be had. */
static tare_status map_room(struct live *l, uint64_t room, tare_error *err)
{
    errno = ENOMEM;
    for (room = fair_room(room); room >= FIRST_BYTES; room /= 2) {
        void *far = far_place(room);
        char *p = mmap(far, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, l->file.fd, 0);
        if (p == MAP_FAILED) continue;
        madvise(p, room, MADV_DONTFORK); /* a child must not scribble into its parent's record */
        bool apart = far && p == far && munmap(p + FIRST_BYTES, room - FIRST_BYTES) == 0;
        l->base = p;
        l->room = room;
        l->mapped = apart ? FIRST_BYTES : room;
        return TARE_OK;
    }
    return error_errno(err, "%s: cannot map the live trace", l->path);
}

/* Threads of the session before may be in live_alloc() at any time. */
static void install(struct live *l, const struct live *fresh)
{
    lock_wait(&l->lock);
    l->file = fresh->file;
    __atomic_store_n(&l->base, fresh->base, __ATOMIC_RELAXED);
    l->room = fresh->room;
    __atomic_store_n(&l->mapped, fresh->mapped, __ATOMIC_RELAXED);
    l->backed = fresh->backed;
    l->waits = fresh->waits;
    memcpy(l->path, fresh->path, sizeof l->path);
    l->pid = getpid();
    __atomic_store_n(&l->broken, false, __ATOMIC_RELEASE);
    __atomic_store_n(&l->refused_at, 0, __ATOMIC_RELAXED);
    l->open = true;
    l->end = (struct told_end){0, RECORD_END_UNTOLD};
    l->end_told = false;
    lock_give(&l->lock);
}

/* Disk is reserved before it is mapped: a store into a hole of a full disk is a SIGBUS in the program. The
 * file is made whole first and then installed under the lock, as threads of the last session may still
 * look at `l`. */
tare_status live_open(struct live *l, const char *path, uint64_t room, tare_error *err)
{
    struct live fresh = LIVE_INIT;
    snprintf(fresh.path, sizeof fresh.path, "%s", path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) fd = process_fd(fd);
    if (fd < 0) return error_errno(err, "%s: cannot create the live trace", path);
    tare_status s;
    fresh.waits = reserve_in_place(fd);
    if (!own_file_take(&fresh.file, fd) || reserve_disk(fd, 0, FIRST_BYTES) < 0) {
        s = error_errno(err, "%s: cannot reserve %d KiB of disk", path, FIRST_BYTES >> 10);
        goto fail;
    }
    fresh.backed = FIRST_BYTES;
    s = map_room(&fresh, room, err);
    if (s == TARE_OK) {
        install(l, &fresh);
        pages_guard(&recorder);
        pages_guard_thread();
        live_header(l)->used = LIVE_HEADER_BYTES;
        return TARE_OK;
    }
fail:
    unlink(path);
    close(fd);
    return s;
}

/* Have the file's bytes up to `end` mapped and reserved on disk. */
static bool back(struct live *l, uint64_t end)
{
    if (end > l->mapped) {
        if (mremap(l->base, l->mapped, end, 0) == MAP_FAILED) return false;
        __atomic_store_n(&l->mapped, end, __ATOMIC_RELAXED);
    }
    if (reserve_disk(l->file.fd, l->backed, end - l->backed) < 0) return false;
    __atomic_store_n(&l->backed, end, __ATOMIC_RELEASE);
    return true;
}

/* The limit may be another than at the start: what is mapped stays, but no more than our share of it is added. */
static int grow(struct live *l, uint64_t need)
{
    uint64_t step = l->backed < STEP_MAX ? l->backed : STEP_MAX;
    uint64_t end = l->backed + step, room = fair_room(l->room);
    if (room < l->mapped) room = l->mapped;
    if (end < need) end = need;
    if (end > room) end = room;
    if (end < need) return -1;
    if (!own_file_reach(&l->file, l->path, O_RDWR)) return -1;
    return back(l, end) || (end != need && back(l, need)) ? 0 : -1;
}

static uint64_t ticks_now(void)
{
    return session.source.tsc ? clock_tsc() : clock_raw_ns();
}

bool live_refuses(const struct live *l)
{
    uint64_t at = __atomic_load_n(&l->refused_at, __ATOMIC_RELAXED);
    return at && ticks_now() - at < session.retry_ticks;
}

/* The lock is held over a system call only when the file must grow. Nothing of the program may notice: errno stays, and
 * a cancelled thread does not end in here. */
struct extent *live_alloc(struct live *l, const char *base, enum extent_type type, uint64_t bytes)
{
    bytes = (bytes + LIVE_ALIGN - 1) / LIVE_ALIGN * LIVE_ALIGN;
    if (live_refuses(l)) return NULL;
    int saved = errno; /* the program's: the end of a scope may stand between its failing call and its look */
    int cancel; /* open and fallocate are where a cancelled thread would end, and leave the lock behind */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    struct extent *x = NULL;
    bool held = lock_take(&l->lock), ours = held && l->open && l->base == base;
    struct live_header *h = ours ? live_header(l) : NULL;
    uint64_t at = ours ? h->used : 0;
    ours = ours && at >= LIVE_HEADER_BYTES && !live_is_broken(l); /* a header that is gone reads as zeros */
    if (ours && bytes <= l->room - at && (at + bytes <= l->backed || grow(l, at + bytes) == 0)) {
        x = (struct extent *)(void *)(l->base + at);
        x->bytes = bytes;
        x->type = (uint16_t)type;
        x->magic = EXTENT_MAGIC;
        __atomic_store_n(&h->used, at + bytes, __ATOMIC_RELEASE);
    }
    if (ours) __atomic_store_n(&l->refused_at, x ? 0 : ticks_now() | 1, __ATOMIC_RELAXED);
    if (held) lock_give(&l->lock);
    pthread_setcancelstate(cancel, NULL);
    errno = saved;
    return x;
}

/* What the file has stays in it. On failure the file mapping stays, which is as safe. */
static void put_memory_in_place(struct live *l)
{
    lock_wait(&l->lock);
    l->open = false;
    lock_give(&l->lock);
    void *p = mmap(l->base, l->mapped, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    (void)p;
}

/* By a system call, which fails where a store would wait or be a fault: the mapping may be gone by now. A file that was
 * cut down to less than its header stays as it is. */
void live_tell_end(struct live *l, enum record_end why)
{
    struct stat st;
    if (!l->end.why) l->end = (struct told_end){clock_raw_ns(), why};
    if (l->end_told || !own_file_reach(&l->file, l->path, O_RDWR)) return;
    if (fstat(l->file.fd, &st) < 0 || st.st_size < LIVE_HEADER_BYTES) return;
    struct quiet q;
    process_quiet(&q);
    ssize_t n = pwrite(l->file.fd, &l->end, sizeof l->end, offsetof(struct live_header, end));
    process_unquiet(&q);
    l->end_told = n == sizeof l->end;
}

/* btrfs lets a store into a page wait for room each time the page was written back, for a tenth of a second and more,
 * so that a program would do little else: scopes became a hundred times slower. */
void live_leave_full_disk(struct live *l)
{
    if (!l->waits || live_is_broken(l) || !reserve_is_nearly_full(l->path, NULL)) return;
    lost();
    put_memory_in_place(l);
    live_tell_end(l, RECORD_END_DISK);
}

void live_abandon(struct live *l, int remove_file)
{
    if (!l->base) return;
    if (remove_file) unlink(l->path);
    put_memory_in_place(l);
    own_file_close(&l->file);
    __atomic_store_n(&l->broken, false, __ATOMIC_RELEASE);
}

void live_disown(struct live *l)
{
    own_file_close(&l->file);
    *l = (struct live)LIVE_INIT;
}

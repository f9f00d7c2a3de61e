/* SPDX-License-Identifier: MIT
 * ring_shared.c - shared slots: see ring_shared.h. */
#include "ring_shared.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

enum { FREE, POSTED, WORKING, DONE }; /* of a slot, in the low bits of its word */
enum { HEAD = 64, PAGE = 4096, SLICE_MS = 20 };

struct head {        /* of the mapping */
    uint32_t posted; /* futex: jobs that were posted */
    uint32_t closed;
    uint32_t process;                   /* pid of the one that posts */
    uint32_t slot_of[SHARED_SLOTS_MAX]; /* of job % slots */
};

static struct head *head_of(const struct shared_ring *r)
{
    return (struct head *)(void *)r->map;
}

static size_t pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

struct shared_slot *shared_slot_of(const struct shared_ring *r, size_t slot)
{
    return (struct shared_slot *)(void *)(r->map + pages(sizeof(struct head)) + slot * r->stride);
}

unsigned char *shared_data(const struct shared_ring *r, size_t slot)
{
    return (unsigned char *)shared_slot_of(r, slot) + HEAD;
}

tare_status shared_open(struct shared_ring *r, size_t slots, size_t slot_bytes, tare_error *err)
{
    size_t n = 1;
    while (n < slots) n *= 2;
    *r = (struct shared_ring){.slots = n, .slot_bytes = slot_bytes};
    if (!slots || n > SHARED_SLOTS_MAX || !slot_bytes || slot_bytes > (size_t)1 << 40)
        return error_set(err, TARE_INVALID, "%zu slots of %zu bytes: 1 to %d slots of 1 byte to 1 TiB", slots,
                         slot_bytes, SHARED_SLOTS_MAX);
    r->stride = pages(HEAD + slot_bytes);
    r->size = pages(sizeof(struct head)) + n * r->stride;
    int fd = (int)syscall(SYS_memfd_create, "tare-ring", 1u /* MFD_CLOEXEC */);
    if (fd < 0) return error_set(err, TARE_IO, "memfd_create: %s", strerror(errno));
    void *map = MAP_FAILED;
    if (ftruncate(fd, (off_t)r->size) == 0)
        map = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int cause = errno;
    close(fd);
    if (map == MAP_FAILED)
        return error_set(err, TARE_IO, "a ring of %zu bytes: %s", r->size, strerror(cause));
    r->map = map;
    head_of(r)->process = (uint32_t)getpid();
    return TARE_OK;
}

static void wake(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* 0, or -1 with errno. Shorter than a slice of time, so that deaths and the end are seen. */
static int doze(uint32_t *word, uint32_t seen, double seconds)
{
    double most = fmin(seconds, SLICE_MS / 1e3);
    struct timespec t = {.tv_sec = 0, .tv_nsec = (long)(most * 1e9)};
    return (int)syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

void shared_close(struct shared_ring *r)
{
    if (r->map) {
        struct head *h = head_of(r);
        if (h->process == (uint32_t)getpid()) {
            __atomic_store_n(&h->closed, 1, __ATOMIC_RELEASE);
            __atomic_fetch_add(&h->posted, 0, __ATOMIC_RELEASE);
            wake(&h->posted);
        }
        munmap(r->map, r->size);
    }
    for (size_t i = 0; i < r->workers; i++) close(r->watched[i]);
    *r = (struct shared_ring){0};
}

/* By pidfd: a number could be another process's by now. */
bool shared_end(struct shared_ring *r, double seconds)
{
    bool ours = r->map && head_of(r)->process == (uint32_t)getpid(), all = true;
    uint64_t begun = clock_raw_ns();
    for (size_t i = 0; ours && i < r->workers; i++)
        syscall(SYS_pidfd_send_signal, r->watched[i], SIGKILL, NULL, 0);
    for (size_t i = 0; i < r->workers; i++) {
        struct pollfd it = {.fd = r->watched[i], .events = POLLIN};
        double left = seconds;
        while (ours && left > 0 && poll(&it, 1, SLICE_MS) <= 0)
            left = seconds - (double)(clock_raw_ns() - begun) / 1e9;
        all = all && (!ours || it.revents);
        close(r->watched[i]);
    }
    r->workers = 0;
    return all;
}

uint32_t shared_post(struct shared_ring *r, size_t slot, uint32_t meta)
{
    struct head *h = head_of(r);
    struct shared_slot *s = shared_slot_of(r, slot);
    uint32_t job = h->posted;
    s->owner = s->at = 0;
    s->meta = meta;
    h->slot_of[job % r->slots] = (uint32_t)slot;
    __atomic_store_n(&s->word, job * 4 + POSTED, __ATOMIC_RELEASE);
    __atomic_store_n(&h->posted, job + 1, __ATOMIC_RELEASE);
    wake(&h->posted);
    return job;
}

tare_status shared_watch(struct shared_ring *r, pid_t pid, tare_error *err)
{
    if (r->workers == SHARED_WORKERS_MAX)
        return error_set(err, TARE_INVALID, "more than %d workers", SHARED_WORKERS_MAX);
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) return error_set(err, TARE_IO, "pidfd_open of %d: %s", (int)pid, strerror(errno));
    r->watched[r->workers] = fd;
    r->pids[r->workers++] = pid;
    return TARE_OK;
}

/* The pid of a watched worker that has ended; 0: all live. */
static pid_t ended(const struct shared_ring *r)
{
    struct pollfd fds[SHARED_WORKERS_MAX];
    for (size_t i = 0; i < r->workers; i++) fds[i] = (struct pollfd){.fd = r->watched[i], .events = POLLIN};
    if (poll(fds, r->workers, 0) <= 0) return 0;
    for (size_t i = 0; i < r->workers; i++)
        if (fds[i].revents) return r->pids[i];
    return 0;
}

/* A worker may end right after it is done: the slot is looked at once more before a death is told. */
enum shared_wait shared_wait_done(struct shared_ring *r, size_t slot, uint32_t job, double seconds,
                                  pid_t *dead)
{
    uint32_t *word = &shared_slot_of(r, slot)->word, want = job * 4 + DONE;
    uint64_t begun = clock_raw_ns();
    *dead = 0;
    for (;;) {
        uint32_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (seen == want) return SHARED_READY;
        if (*dead) return SHARED_DEAD;
        double left = seconds - (double)(clock_raw_ns() - begun) / 1e9;
        if (left <= 0) return SHARED_LATE;
        if (doze(word, seen, left) == 0 || errno == EAGAIN) continue;
        if (errno == EINTR) return SHARED_SIGNAL;
        *dead = ended(r);
    }
}

enum shared_wait shared_take(struct shared_ring *r, uint32_t job, double seconds, size_t *slot)
{
    struct head *h = head_of(r);
    uint64_t begun = clock_raw_ns();
    for (;;) {
        uint32_t posted = __atomic_load_n(&h->posted, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&h->closed, __ATOMIC_ACQUIRE)) return SHARED_CLOSED;
        if ((int32_t)(posted - job) > 0) break;
        double left = seconds - (double)(clock_raw_ns() - begun) / 1e9;
        if (left <= 0) return SHARED_LATE;
        if (doze(&h->posted, posted, left) == 0 || errno == EAGAIN) continue;
        if (errno == EINTR) return SHARED_SIGNAL;
        if ((uint32_t)getppid() != h->process) return SHARED_DEAD;
    }
    *slot = h->slot_of[job % r->slots];
    if (*slot >= r->slots) return SHARED_CLOSED;
    struct shared_slot *s = shared_slot_of(r, *slot);
    uint32_t expected = job * 4 + POSTED;
    s->owner = (uint32_t)getpid();
    bool mine = __atomic_compare_exchange_n(&s->word, &expected, job * 4 + WORKING, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE);
    return mine ? SHARED_READY : SHARED_CLOSED;
}

tare_status shared_done(struct shared_ring *r, size_t slot, const struct shared_made *made, tare_error *err)
{
    struct shared_slot *s = shared_slot_of(r, slot);
    if (__atomic_load_n(&s->word, __ATOMIC_ACQUIRE) != made->job * 4 + WORKING)
        return error_set(err, TARE_BUSY, "slot %zu is not that of job %u any more", slot, made->job);
    memcpy(shared_data(r, slot), made->meta, made->bytes);
    s->meta = (uint32_t)made->bytes;
    s->kind = made->kind;
    __atomic_store_n(&s->word, made->job * 4 + DONE, __ATOMIC_RELEASE);
    wake(&s->word);
    return TARE_OK;
}

/* SPDX-License-Identifier: MIT
 * drain.c - the helper thread: takes full event chunks from the threads, packs them into the archive, and
 * gives the emptied memory back. Polls, because waking it would cost the program a system call. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "trace/extent.h"
#include "trace/pack.h"
#include "trace/recorder.h"
#include "trace/wire.h"

enum {
    BUSY_NS = 1000000,
    IDLE_NS = 20000000,
    STACK_BYTES = 256 << 10,
    PAGE_BYTES = 4096,
    CHUNKS_WAITING = 4
};

static pthread_t helper;
/* HELPER_ENDED: until the next session begins. */
enum { HELPER_NONE, HELPER_STARTS, HELPER_RUNS, HELPER_REFUSED, HELPER_ENDED };
static uint32_t running, stopping;
static sigset_t program_mask;
static struct packer *packer;

static void archive_chunk(const struct extent *x, uint64_t chunk_bytes)
{
    const struct raw_event *e = (const struct raw_event *)(const void *)(x + 1);
    size_t slots = (chunk_bytes - sizeof *x) / sizeof *e;
    uint64_t uid = session.calibrated.uid;
    if (session.archived_bytes < session.options.disk_bytes) {
        size_t bytes = pack_events(packer, x, e, slots, session.shift);
        if (!bytes) return;
        if (packer->pauses_bytes && archive_append(CHUNK_PAUSES, uid, packer->pauses, packer->pauses_bytes))
            session.archived_bytes += packer->pauses_bytes + sizeof(struct chunk_header);
        if (archive_append(CHUNK_EVENTS, uid, packer->out, bytes)) {
            session.archived_bytes += bytes + sizeof(struct chunk_header);
            return;
        }
    }
    live_header(&session.live)->lost_events += pack_count(e, slots);
}

/* May the mapping be written to? Asked before each page where that may wait for the disk. */
static bool may_write(void)
{
    live_leave_full_disk(&session.live);
    return !live_is_broken(&session.live);
}

static void recycle_chunk(struct thread *t, struct extent *x, uint64_t bytes)
{
    char *end = (char *)x + bytes, *p = (char *)(x + 1);
    extent_retire(x); /* first: from here on it is in the archive only */
    for (char *next; p < end && may_write(); p = next) {
        next = (char *)x + ((size_t)(p - (char *)x) / PAGE_BYTES + 1) * PAGE_BYTES;
        memset(p, 0, (size_t)((next < end ? next : end) - p));
    }
    if (p >= end) ring_push(&t->free, (uint64_t)x);
}

/* A thread that ended: its name and number go into the archive before the slot is used again. */
static void archive_ended_thread(struct thread *t)
{
    uint8_t out[256];
    struct enc e = {out, out + sizeof out, false};
    const struct slot_header *h = t->head;
    enc_uints(&e, t->index, t->slot, t->tid, 0, 0, 0, 0); /* its losses are counted with the slot */
    uint32_t ref = mapped_ref(&h->given);
    const char *given = ref ? (const char *)node_at(t, ref) : "";
    if (given[0])
        enc_str(&e, given, strnlen(given, THREAD_NAME_MAX));
    else
        enc_str(&e, h->name, strnlen(h->name, sizeof h->name));
    archive_append(CHUNK_THREAD, session.calibrated.uid, out, (size_t)(e.p - out));
    __atomic_store_n(&t->retired, SLOT_FREE, __ATOMIC_RELEASE);
}

/* A signal handler may fill up the chunk in which the code below it has taken a place, but not written to it yet. Such
 * a chunk waits until that code had its turn; handlers that do nothing but record are not waited for. */
static bool is_under_way(struct thread *t, const struct extent *x, uint64_t bytes)
{
    const struct raw_event *e = (const struct raw_event *)(const void *)(x + 1);
    return ring_used(&t->full) < CHUNKS_WAITING && !pack_is_whole(e, (bytes - sizeof *x) / sizeof *e);
}

/* The next full chunk, or the one that had to wait. */
static struct extent *next_chunk(struct thread *t)
{
    uint64_t word;
    struct extent *x = t->kept;
    t->kept = NULL;
    if (x) return x;
    return ring_pop(&t->full, &word) ? (struct extent *)word : NULL;
}

/* The slot is given away last: `ended` was read before the ring, so nothing comes into the ring after it was found
 * empty. */
static bool drain_thread(struct thread *t)
{
    struct extent *x;
    bool any = false, ended = __atomic_load_n(&t->retired, __ATOMIC_ACQUIRE) == SLOT_ENDED;
    while (may_write() && (x = next_chunk(t))) {
        uint64_t bytes =
            __atomic_load_n(&x->bytes, __ATOMIC_RELAXED); /* once: its page may go at any moment */
        if (bytes != FIRST_CHUNK_BYTES && bytes != CHUNK_BYTES) break;
        if (!ended && is_under_way(t, x, bytes)) {
            t->kept = x;
            break;
        }
        archive_chunk(x, bytes);
        recycle_chunk(t, x, bytes);
        any = true;
    }
    if (ended && !live_is_broken(&session.live)) archive_ended_thread(t);
    return any;
}

static bool drain_pass(void)
{
    bool any = false;
    for (struct thread *t = __atomic_load_n(&session.threads, __ATOMIC_ACQUIRE); t; t = t->next)
        any |= drain_thread(t);
    return any;
}

/* Ends early when the session stops: exit must not wait for a sleeper. */
static void nap(long ns)
{
    syscall(SYS_futex, &stopping, FUTEX_WAIT_PRIVATE, 0, &(struct timespec){0, ns}, NULL, 0);
}

/* Naps grow while there is nothing to do, from 1 to 20 ms: the chunks that a thread has in reserve bridge that. */
static void *drain_main(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "tare-drain", 0, 0, 0);
    long pause = BUSY_NS;
    while (!__atomic_load_n(&stopping, __ATOMIC_ACQUIRE)) {
        if (may_write()) session_pair();
        if (drain_pass())
            pause = BUSY_NS;
        else
            pause = pause * 2 < IDLE_NS ? pause * 2 : IDLE_NS;
        if (pause == IDLE_NS &&
            process_last_thread()) { /* glibc calls exit(0) when the last thread returns */
            pthread_sigmask(SIG_SETMASK, &program_mask, NULL);
            break;
        }
        nap(pause);
    }
    if (live_is_broken(&session.live)) live_tell_end(&session.live, RECORD_END_PAGE);
    return NULL;
}

/* A small stack: the program's address space may be limited. Its thread-local data may not fit that one. */
static bool helper_create(void)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0) return false;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    int rc = pthread_create(&helper, &attr, drain_main, NULL);
    pthread_attr_destroy(&attr);
    return rc == 0 || (rc == EINVAL && pthread_create(&helper, NULL, drain_main, NULL) == 0);
}

/* Called by any thread that fills chunks; whoever changes `running` first starts the helper. */
void drain_start(void)
{
    uint32_t was = HELPER_NONE;
    if (__atomic_load_n(&running, __ATOMIC_RELAXED)) return;
    if (!__atomic_compare_exchange_n(&running, &was, HELPER_STARTS, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    if (!packer) packer = process_memory(sizeof *packer);
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* a fault that is blocked ends the program: see pages.c */
    pthread_sigmask(SIG_SETMASK, &all,
                    &program_mask); /* the program's signals are for the program's threads */
    __atomic_store_n(&stopping, 0, __ATOMIC_RELEASE);
    bool ok = packer && helper_create();
    pthread_sigmask(SIG_SETMASK, &program_mask, NULL);
    /* Without one it is not tried again: rings fill, then drop and count. */
    __atomic_store_n(&running, ok ? HELPER_RUNS : HELPER_REFUSED, __ATOMIC_RELEASE);
}

void drain_stop(void)
{
    uint32_t was = HELPER_NONE; /* a thread that is late must not start one for memory that is given away */
    while (!__atomic_compare_exchange_n(&running, &was, HELPER_ENDED, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
        if (was == HELPER_STARTS) sched_yield(), was = HELPER_NONE;
    }
    if (was == HELPER_RUNS) {
        __atomic_store_n(&stopping, 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, &stopping, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        if (!pthread_equal(pthread_self(), helper))
            pthread_join(helper, NULL); /* it is us after the last thread's end */
    }
    if (packer) drain_pass();
}

void drain_abandon(void)
{
    __atomic_store_n(&stopping, 1, __ATOMIC_RELEASE);
}

void drain_forget(void)
{
    __atomic_store_n(&running, HELPER_NONE, __ATOMIC_RELEASE);
}

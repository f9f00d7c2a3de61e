/* SPDX-License-Identifier: MIT
 * collect.c - CUPTI asks for buffers and gives them back full, on any thread and within its own locks: both are one
 * compare-and-swap here. Our thread decodes what is full every 50 ms, and once a second (at first more often) makes
 * CUPTI hand over what is half full, so that a kill loses about a second. It also clears the buffers, which else
 * CUPTI would do on the program's threads. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gpu/gpu.h"

enum {
    BUFFER_BYTES = 2 << 20,
    BUFFERS = 128,
    CUPTI_TAKES_NULL = 27, /* CUDA 12.9 */
    TICK_MS = 10,
    EMPTY_TICKS = 5,
    FLUSH_TICKS = 100,
    STOP_MS = 5000
};
enum buffer_state { BUFFER_NONE, BUFFER_FREE, BUFFER_OUT, BUFFER_FULL, BUFFER_BUSY };

struct buffer {
    _Atomic uint32_t state;
    uint8_t *_Atomic bytes; /* set once; looked at by threads that give back another one */
    size_t valid;
    void *context;
    uint32_t stream;
    uint64_t order; /* in which it came back */
};

static struct {
    struct buffer buffers[BUFFERS];
    _Atomic uint64_t order, thrown_away;
    const struct cupti *cupti;
    struct book *book;
    pthread_t thread;
    _Atomic bool runs;
    _Atomic uint32_t stop, done; /* waited for by futex */
} it;

/* ---- CUPTI's side ---- */

static bool take(struct buffer *f, uint32_t from)
{
    return atomic_compare_exchange_strong(&f->state, &from, BUFFER_BUSY);
}

static uint8_t *new_bytes(void)
{
    void *p = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* None left: CUPTI then drops records and counts them. Before CUDA 12.9 it can crash on that: it gets a buffer that is
 * thrown away when it comes back. */
void collect_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = NULL;
    *size = BUFFER_BYTES;
    *max_records = 0;
    for (int i = 0; i < BUFFERS && !*buffer; i++) {
        struct buffer *f = &it.buffers[i];
        if (!take(f, BUFFER_FREE) && !take(f, BUFFER_NONE)) continue;
        if (!atomic_load(&f->bytes)) atomic_store(&f->bytes, new_bytes());
        *buffer = atomic_load(&f->bytes);
        atomic_store(&f->state, *buffer ? BUFFER_OUT : BUFFER_NONE);
        if (!*buffer) break; /* no memory */
    }
    if (!*buffer && it.cupti && it.cupti->version < CUPTI_TAKES_NULL) *buffer = new_bytes();
    if (!*buffer) *size = 0;
}

void collect_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    if (!buffer) return;
    for (int i = 0; i < BUFFERS; i++) {
        struct buffer *f = &it.buffers[i];
        if (atomic_load(&f->bytes) != buffer || !take(f, BUFFER_OUT)) continue;
        f->valid = valid;
        f->context = context;
        f->stream = stream;
        f->order = atomic_fetch_add(&it.order, 1);
        atomic_store(&f->state, valid ? BUFFER_FULL : BUFFER_FREE);
        return;
    }
    (void)size;
    munmap(buffer, BUFFER_BYTES);
    if (valid) atomic_fetch_add(&it.thrown_away, 1);
}

/* ---- our thread ---- */

/* A nap that ends early when the flag is told: a block's end must not wait for a tick. */
static void wait_for(_Atomic uint32_t *flag, long ms)
{
    syscall(SYS_futex, flag, FUTEX_WAIT_PRIVATE, 0, &(struct timespec){0, ms * 1000000L}, NULL, 0);
}

static void tell(_Atomic uint32_t *flag)
{
    atomic_store(flag, 1);
    syscall(SYS_futex, flag, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static struct buffer *oldest_full(void)
{
    struct buffer *best = NULL;
    for (int i = 0; i < BUFFERS; i++) {
        struct buffer *f = &it.buffers[i];
        if (atomic_load(&f->state) == BUFFER_FULL && (!best || f->order < best->order)) best = f;
    }
    return best;
}

/* Those that were full when it was called: a program that launches as it ends must not keep us, nor us it. */
static void empty_buffers(void)
{
    struct buffer *f;
    uint64_t until = atomic_load(&it.order);
    it.book->unread += atomic_exchange(&it.thrown_away, 0);
    while ((f = oldest_full()) && f->order < until) {
        size_t dropped = 0;
        decode_buffer(it.book, it.cupti, f->bytes, f->valid);
        memset(f->bytes, 0, f->valid);
        if (it.cupti->dropped(f->context, f->stream, &dropped) == CUPTI_OK) it.book->dropped += dropped;
        atomic_store(&f->state, BUFFER_FREE);
    }
}

static void collect(bool flush, bool forced)
{
    book_watch_clock(it.book, it.cupti);
    nvtx_collect(it.book);
    if (flush) {
        book_clock(it.book, it.cupti);
        it.cupti->flush_all(0);
        if (forced) it.cupti->flush_all(CUPTI_FLUSH_FORCED);
    }
    empty_buffers();
    if (!flush) return;
    if (forced)
        guard_end(it.book);
    else
        guard_look(it.book);
    book_clock(it.book, it.cupti);
    book_flush(it.book);
}

static void *run(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "tare-gpu");
    for (unsigned tick = 1; !atomic_load(&it.stop); tick++) {
        wait_for(&it.stop, TICK_MS);
        bool early = tick < FLUSH_TICKS && (tick & (tick - 1)) == 0 && tick >= 8;
        host_look(it.book);
        nvtx_collect(it.book); /* at every tick: the queue is small */
        if (early || tick % EMPTY_TICKS == 0) collect(early || tick % FLUSH_TICKS == 0, false);
    }
    collect(true, true);
    book_close(it.book);
    tell(&it.done);
    return NULL;
}

/* Signals are the program's: our thread takes none. */
bool collect_start(const struct cupti *c, struct book *b)
{
    sigset_t all, before;
    it.cupti = c;
    it.book = b;
    atomic_store(&it.stop, 0);
    atomic_store(&it.done, 0);
    host_forget();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&it.thread, NULL, run, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    atomic_store(&it.runs, ok);
    return ok;
}

bool collect_stop(uint32_t most_ms)
{
    if (!atomic_exchange(&it.runs, false)) return false;
    tell(&it.stop);
    for (uint32_t ms = 0; ms < most_ms && !atomic_load(&it.done); ms++) wait_for(&it.done, 1);
    if (!atomic_load(&it.done)) return false;
    pthread_join(it.thread, NULL); /* it only returns: our code may go after that */
    return true;
}

void collect_stop_at_exit(void)
{
    collect_stop(STOP_MS);
}

void collect_abandon(void)
{
    atomic_store(&it.runs, false);
}

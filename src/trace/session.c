/* SPDX-License-Identifier: MIT
 * session.c - starting and stopping, in this process and in the children it forks. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "trace/pages.h"
#include "trace/open_scopes.h"
#include "trace/recorder.h"

struct session session = {.archive = OWN_FILE_INIT, .live = LIVE_INIT};
struct fork_page *fork_page;

const char *tare_version(void)
{
    return TARE_VERSION;
}

/* Would giving way with sched_yield() not let an ordinary thread run? */
static bool is_real_time(void)
{
    int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
    return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

/* A real-time thread that spins on its holder's processor keeps it from ever giving the lock back. A holder on
 * another processor is done within a few turns, unless it waits for the disk. */
bool lock_take(uint32_t *lock)
{
    for (unsigned turn = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE); turn++) {
        if (turn == 16 && is_real_time()) return false;
        sched_yield();
    }
    return true;
}

void lock_give(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

void lock_wait(uint32_t *lock)
{
    while (!lock_take(lock)) nanosleep(&(struct timespec){0, 1000000}, NULL);
}

/* Which clock scopes of this session read. */
uint32_t session_clock(void)
{
    if (!session.source.tsc) return TICK_RAW;
    return session.options.clock == TARE_CLOCK_FAST || !session.source.tscp ? TICK_FAST : TICK_ORDERED;
}

/* ---- clock pairs ---- */

static void pair_add(const struct clock_pair *p)
{
    struct live_header *h = live_header(&session.live);
    if (h->n_pairs == LIVE_PAIRS) { /* thin out: keep the first, and the spread */
        for (uint32_t i = 1; i < LIVE_PAIRS / 2; i++) h->pairs[i] = h->pairs[2 * i];
        h->n_pairs = LIVE_PAIRS / 2;
    }
    h->pairs[h->n_pairs] = *p;
    __atomic_store_n(&h->n_pairs, h->n_pairs + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&session.last_pair_ns, p->raw_ns, __ATOMIC_RELAXED);
}

/* Called by the helper and by starting threads: at most one pair in 100 ms, and never waiting. */
void session_pair(void)
{
    uint64_t now = clock_raw_ns(), last = __atomic_load_n(&session.last_pair_ns, __ATOMIC_RELAXED);
    if (now - last < 100000000 || !__atomic_load_n(&tare_recording, __ATOMIC_RELAXED)) return;
    if (__atomic_exchange_n(&session.lock, 1, __ATOMIC_ACQUIRE)) return;
    if (__atomic_load_n(&tare_recording, __ATOMIC_RELAXED)) { /* still: its end waits for the lock */
        struct clock_pair p;
        clock_pair_take(&p, &session.source);
        pair_add(&p);
    }
    lock_give(&session.lock);
}

/* ---- the live file of this process ---- */

/* The magic is written last: a live file is one from that moment on, with all of its header there. */
static tare_status open_live(uint64_t parent_uid, const struct process_info *calibrated, tare_error *err)
{
    char path[sizeof session.live.path];
    uint64_t uid = process_random();
    int n = snprintf(path, sizeof path, "%s.live-%d-%08x", session.path, (int)getpid(), (unsigned)uid);
    if (n < 0 || (size_t)n >= sizeof path)
        return error_set(err, TARE_INVALID, "%s: the path is too long", session.path);
    tare_status s = live_open(&session.live, path, session.options.memory_bytes, err);
    if (s != TARE_OK) return s;
    struct live_header *h = live_header(&session.live);
    h->major = TRACE_MAJOR;
    h->minor = TRACE_MINOR;
    h->header_bytes = sizeof *h;
    memcpy(h->run_id, session.run_id, sizeof h->run_id);
    h->process = *calibrated;
    h->process.uid = uid;
    h->process.parent_uid = parent_uid;
    h->process.pid = (uint32_t)getpid();
    h->process.parent_pid = (uint32_t)getppid();
    h->process.start_time = process_start_time(h->process.pid);
    h->process.begun_raw_ns = clock_raw_ns();
    h->process.begun_unix_ns = clock_unix_ns();
    h->process.mode = session.options.mode;
    h->process.clock = session.options.clock;
    h->process.tsc = session.source.tsc;
    h->process.site_base = session.next_site;
    process_command(h->command, sizeof h->command, 0);
    session.sites = NULL;
    session.archived_bytes = 0;
    memcpy(h->magic, LIVE_MAGIC, sizeof h->magic);
    return TARE_OK;
}

/* ---- start ---- */

static tare_status check_options(const tare_options *o, tare_error *err)
{
    if (!o || o->size < sizeof *o) return error_set(err, TARE_INVALID, "options: use TARE_OPTIONS_INIT");
    if (!o->path || !o->path[0]) return error_set(err, TARE_INVALID, "options.path: no trace file named");
    if (!(o->mode & (TARE_AGGREGATE | TARE_EVENTS)) || o->mode > (TARE_AGGREGATE | TARE_EVENTS))
        return error_set(err, TARE_INVALID, "options.mode: %u is not TARE_AGGREGATE, TARE_EVENTS or both",
                         o->mode);
    if (o->clock > TARE_CLOCK_FAST)
        return error_set(err, TARE_INVALID, "options.clock: %u is unknown", o->clock);
    if (o->memory_bytes < 1 << 20)
        return error_set(err, TARE_INVALID, "options.memory_bytes: at least 1 MiB");
    if (o->memory_bytes > (uint64_t)1 << 37)
        return error_set(err, TARE_INVALID, "options.memory_bytes: at most 128 GiB");
    if (o->weigh_one_in > 1 << 20)
        return error_set(err, TARE_INVALID, "options.weigh_one_in: at most 1048576");
    return TARE_OK;
}

/* %p becomes the process id, %% a percent sign. */
static tare_status expand_path(char *out, size_t size, const char *path, tare_error *err)
{
    size_t n = 0;
    for (const char *p = path; *p && n < size - 16; p++) {
        if (p[0] == '%' && p[1] == 'p')
            n += (size_t)snprintf(out + n, size - n, "%d", (int)getpid()), p++;
        else if (p[0] == '%' && p[1] == '%')
            out[n++] = '%', p++;
        else
            out[n++] = *p;
    }
    out[n] = 0;
    return n < size - 16 ? TARE_OK : error_set(err, TARE_INVALID, "%.60s...: the path is too long", path);
}

/* A relative path must keep its meaning when the program changes its folder. */
static tare_status absolute_path(tare_error *err)
{
    char here[sizeof session.path];
    if (session.path[0] == '/') return TARE_OK;
    if (!getcwd(here, sizeof here)) return error_errno(err, "cannot tell the current folder");
    size_t n = strlen(here), m = strlen(session.path);
    if (n + m + 2 > sizeof session.path)
        return error_set(err, TARE_INVALID, "%s: the path is too long", session.path);
    memmove(session.path + n + 1, session.path, m + 1);
    memcpy(session.path, here, n);
    session.path[n] = '/';
    return TARE_OK;
}

static tare_status make_fork_page(tare_error *err)
{
    if (fork_page) return TARE_OK;
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return error_errno(err, "cannot map a page");
    if (madvise(p, 4096, MADV_WIPEONFORK) < 0) {
        munmap(p, 4096);
        return error_set(err, TARE_UNSUPPORTED,
                         "this kernel cannot wipe memory on fork (Linux 4.14 or newer is needed)");
    }
    fork_page = p;
    return TARE_OK;
}

/* Unit of packed times: 1 to 2 ns, well under what a clock read resolves. */
static unsigned time_shift(double tick_ns)
{
    unsigned shift = 0;
    while (tick_ns > 0 && tick_ns * (double)(2u << shift) <= 2.0) shift++;
    return shift;
}

/* Two clock pairs around the weighing at start-up give the length of a tick before the first scope. */
static tare_status begin_recording(tare_error *err)
{
    struct clock_pair first, second;
    struct process_info calibrated = {0};
    clock_pair_take(&first, &session.source);
    lock_wait(&session.lock);
    session.number++;
    session.next_site = 1;
    session.sites = NULL;
    lock_give(&session.lock);
    weigh_startup(&calibrated, &session.options);
    tare_status s = open_live(0, &calibrated, err);
    if (s != TARE_OK) return s;
    clock_pair_take(&second, &session.source);
    session.calibrated = live_header(&session.live)->process;
    session.first_pair = first;
    lock_wait(&session.lock);
    pair_add(&first);
    pair_add(&second);
    lock_give(&session.lock);
    double tick_ns = session.source.tsc ? clock_tick_ns(&first, &second) : 1;
    session.shift = session.source.tsc ? time_shift(tick_ns) : 0;
    session.retry_ticks = tick_ns > 0 ? (uint64_t)(LIVE_RETRY_NS / tick_ns) : LIVE_RETRY_NS;
    if (archive_process()) return TARE_OK;
    live_abandon(&session.live, 1);
    return error_set(err, TARE_IO, "%s: cannot write the trace", session.path);
}

/* Libraries loaded with dlopen, and threads, may still be at work: recording just ends. */
static void stop_at_exit(void)
{
    tare_stop(NULL);
}

static void watch_exit(void)
{
    static bool watched; /* a forked child has its parent's handlers */
    if (!watched) watched = atexit(stop_at_exit) == 0;
}

/* tare_recording is set last: from then on every thread writes, and all it uses must be there. FORK_READY
 * goes before it, since a process without that takes itself for a forked child. */
tare_status start_session(const tare_options *opts, bool force_fallback, tare_error *err)
{
    tare_status s = check_options(opts, err);
    if (s != TARE_OK) return s;
    if (__atomic_load_n(&tare_recording, __ATOMIC_RELAXED))
        return error_set(err, TARE_BUSY, "a session is already recording into %s", session.path);
    if ((s = make_fork_page(err)) != TARE_OK) return s;
    if (live_is_broken(&session.live)) tare_stop(NULL); /* nobody stopped the last one */
    if ((s = expand_path(session.path, sizeof session.path, opts->path, err)) != TARE_OK) return s;
    if ((s = absolute_path(err)) != TARE_OK) return s;
    session.options = *opts;
    session.options.path = session.path;
    clock_detect(&session.source, force_fallback);
    if ((s = archive_join(session.path, err)) != TARE_OK) return s;
    if ((s = begin_recording(err)) != TARE_OK) {
        archive_leave();
        return s;
    }
    drain_forget(); /* the last session's */
    if (session.options.mode & TARE_EVENTS || session.live.waits) drain_start();
    __atomic_store_n(&fork_page->state, FORK_READY, __ATOMIC_RELEASE);
    watch_exit();
    open_scopes_tell();
    if (live_is_broken(&session.live)) {
        tare_stop(NULL);
        return error_set(err, TARE_IO, "%s: its disk does not keep what it promised", session.path);
    }
    __atomic_store_n(&tare_recording, 1, __ATOMIC_RELEASE);
    return TARE_OK;
}

tare_status tare_start(const tare_options *opts, tare_error *err)
{
    return start_session(opts, false, err);
}

/* ---- a forked child ---- */

/* Everything here was copied from the parent at some moment of its life: locks may be held, the helper is
 * not there, and the parent's mapping is gone. */
static void forget_parent(void)
{
    session.lock = 0;
    drain_forget();
    thread_forget_all();
    live_disown(&session.live);
}

tare_status session_child(void)
{
    struct process_info calibrated = session.calibrated;
    forget_parent();
    if (archive_reopen() != TARE_OK) return TARE_IO;
    tare_status s = open_live(session.calibrated.uid, &calibrated, NULL);
    if (s != TARE_OK) return s;
    session.calibrated = live_header(&session.live)->process;
    struct clock_pair p;
    clock_pair_take(&p, &session.source);
    pair_add(&session.first_pair); /* a baseline for the length of a tick */
    pair_add(&p);
    return archive_process() ? TARE_OK : TARE_IO;
}

/* ---- stop ---- */

/* What tare_stop() does once it is this thread's to do. The helper ends before the last clock pair and the archive's
 * end are written, and threads are forgotten under the lock when nothing reads their records any more. */
static tare_status stop_session(tare_error *err)
{
    if (__atomic_load_n(&fork_page->state, __ATOMIC_ACQUIRE) != FORK_READY) { /* forked, recorded nothing */
        forget_parent();
        archive_leave();
        return TARE_OK;
    }
    pages_guard_thread(); /* it may have blocked all signals since its first scope */
    drain_stop();
    scope_flush(self_thread());
    struct clock_pair p;
    clock_pair_take(&p, &session.source);
    lock_wait(&session.lock);
    pair_add(&p);
    thread_names();
    lock_give(&session.lock);
    /* Without its header a live file cannot be folded in: it is left for the reader, as after a kill. */
    bool whole = !live_is_broken(&session.live) && archive_close() && !live_is_broken(&session.live);
    if (whole) archive_fold_dead();
    if (!whole)
        live_tell_end(&session.live, live_is_broken(&session.live) ? RECORD_END_PAGE : RECORD_END_KEPT);
    live_abandon(&session.live, whole);
    archive_leave();
    lock_wait(&session.lock);
    thread_forget_all();
    lock_give(&session.lock);
    __atomic_store_n(&fork_page->state, FORK_ENDED, __ATOMIC_RELEASE); /* a late thread is no forked child */
    if (whole) return TARE_OK;
    return error_set(err, TARE_IO, "%s: cannot write (disk full?); what was recorded is kept in %s",
                     session.path, session.live.path);
}

/* Of two that stop at once one goes on: the flag of a session that records is taken down by exchange, but one whose
 * live file broke has none any more, and whoever comes finds it broken until it was put away. */
tare_status tare_stop(tare_error *err)
{
    bool recorded = __atomic_exchange_n(&tare_recording, 0, __ATOMIC_ACQ_REL);
    tare_status s = TARE_OK;
    if (!fork_page) return TARE_OK; /* nothing was ever started */
    while (__atomic_exchange_n(&fork_page->stopping, 1, __ATOMIC_ACQ_REL)) {
        if (!recorded) return TARE_OK; /* it is being stopped, or looked at */
        sched_yield();
    }
    if (recorded || live_is_broken(&session.live)) s = stop_session(err);
    __atomic_store_n(&fork_page->stopping, 0, __ATOMIC_RELEASE);
    return s;
}

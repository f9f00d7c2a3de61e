/* SPDX-License-Identifier: MIT
 * archive_session.c - the archive of the recording session: joined, appended to, and what live files hold folded in.
 * archive.c knows nothing of sessions: a library that records in another way uses it alone. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/fold.h"
#include "trace/recorder.h"

enum { LOCK_TRIES_MS = 2000, APPEND = O_RDWR | O_APPEND | O_NONBLOCK };

static bool within_reach(void)
{
    return session.archive.ino && own_file_reach(&session.archive, session.path, APPEND);
}

bool archive_append(enum chunk_type type, uint64_t process, const void *payload, size_t bytes)
{
    struct chunk_header h = archive_chunk_header(type, process, payload, bytes);
    struct iovec v[2] = {{&h, sizeof h}, {(void *)(uintptr_t)payload, bytes}};
    if (!within_reach() || !archive_lock(session.archive.fd, LOCK_TRIES_MS)) return false;
    return archive_write(session.archive.fd, true, v);
}

tare_status archive_join(const char *path, tare_error *err)
{
    session.run_id[0] = 0;
    int fd = archive_open(path, session.run_id, err);
    if (fd < 0) return (tare_status)fd;
    own_file_take(&session.archive,
                  fd); /* locked until our first chunk is in: nobody may take the trace for a dead one */
    return TARE_OK;
}

/* A forked child shares its parent's open file and so its lock: get one of our own. */
tare_status archive_reopen(void)
{
    char link[40];
    int parents = session.archive.fd;
    snprintf(link, sizeof link, "/proc/self/fd/%d", parents);
    if (!own_file_is_open(&session.archive)) return within_reach() ? TARE_OK : TARE_IO;
    int fd = open(link, O_RDWR | O_APPEND | O_CLOEXEC);
    if (fd < 0) fd = open(session.path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    close(parents);
    session.archive.fd = fd >= 0 ? process_fd(fd) : -1;
    return own_file_is_open(&session.archive) ? TARE_OK : TARE_IO;
}

void archive_leave(void)
{
    own_file_close(&session.archive);
    session.archive.ino = 0;
}

/* ---- folding live files in ---- */

static bool append_chunk(void *ctx, enum chunk_type type, uint64_t process, const void *payload, size_t bytes)
{
    (void)ctx;
    return archive_append(type, process, payload, bytes);
}

static struct fold *fold_open(const char *base, uint64_t bytes, bool closed)
{
    struct fold *f = process_memory(sizeof *f);
    if (!f) return NULL;
    f->base = base;
    f->bytes = bytes;
    f->shift = session.shift;
    f->closed = closed;
    f->emit = append_chunk;
    return f;
}

bool archive_process(void)
{
    struct fold *f = fold_open(session.live.base, session.live.backed, true);
    bool ok = f && fold_process(f) && fold_clock(f);
    if (f) munmap(f, sizeof *f);
    return ok;
}

bool archive_close(void)
{
    struct fold *f = fold_open(session.live.base, session.live.backed, true);
    bool ok = f && fold_rest(f);
    if (f) munmap(f, sizeof *f);
    return ok;
}

/* Dead, or ourselves before an exec. Another process that folds it at this moment holds its lock. */
static bool fold_wanted(int fd, const struct live_header *h, uint64_t bytes)
{
    struct stat st;
    return fold_valid(h, bytes) && memcmp(h->run_id, session.run_id, sizeof h->run_id) == 0 &&
           h->process.uid != live_header(&session.live)->process.uid &&
           (h->process.pid == (uint32_t)getpid() ||
            process_start_time(h->process.pid) != h->process.start_time) &&
           flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0;
}

/* A live file of this trace that nobody writes to any more: its chunks go into the archive, and then it is removed. */
static void fold_file(const char *path, void *unused)
{
    (void)unused;
    struct stat st;
    int fd = archive_open_own(path, &st);
    if (fd < 0) return;
    void *p = st.st_size >= LIVE_HEADER_BYTES ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0)
                                              : MAP_FAILED;
    if (p != MAP_FAILED && fold_wanted(fd, p, (uint64_t)st.st_size)) {
        struct fold *f = fold_open(p, (uint64_t)st.st_size, false);
        if (f && fold_rest(f)) unlink(path);
        if (f) munmap(f, sizeof *f);
    }
    if (p != MAP_FAILED) munmap(p, (size_t)st.st_size);
    close(fd);
}

void archive_fold_dead(void)
{
    fold_each_live(session.path, fold_file, NULL);
}

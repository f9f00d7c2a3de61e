/* SPDX-License-Identifier: MIT
 * archive.c - FILE.tare: created by the first process, joined by its children and by any other program that
 * is given the same path while it records. Appends are whole chunks under a short file lock, so that a
 * failed one can be taken back. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/crc.h"
#include "trace/fold.h"
#include "trace/recorder.h"

/* ---- appending ---- */

static bool still_ours(void)
{
    struct stat st;
    return fstat(session.archive_fd, &st) == 0 && st.st_dev == session.archive_dev &&
           st.st_ino == session.archive_ino;
}

static bool lock(int how)
{
    while (flock(session.archive_fd, how) < 0)
        if (errno != EINTR) return false;
    return true;
}

static bool write_all(int fd, struct iovec v[2])
{
    while (v[0].iov_len + v[1].iov_len) {
        ssize_t n = writev(fd, v, 2);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        size_t first = (size_t)n < v[0].iov_len ? (size_t)n : v[0].iov_len, second = (size_t)n - first;
        v[0].iov_base = (char *)v[0].iov_base + first;
        v[0].iov_len -= first;
        v[1].iov_base = (char *)v[1].iov_base + second;
        v[1].iov_len -= second;
    }
    return true;
}

bool archive_append(enum chunk_type type, uint64_t process, const void *payload, size_t bytes)
{
    struct chunk_header h = {.magic = CHUNK_MAGIC,
                             .type = (uint16_t)type,
                             .stored_bytes = (uint32_t)bytes,
                             .plain_bytes = (uint32_t)bytes,
                             .process = process};
    h.crc = crc32c(crc32c(0, &h, sizeof h), payload, bytes);
    if (session.archive_fd < 0 || !still_ours() || !lock(LOCK_EX)) return false;
    off_t end = lseek(session.archive_fd, 0, SEEK_END);
    struct iovec v[2] = {{&h, sizeof h}, {(void *)(uintptr_t)payload, bytes}};
    bool ok = end >= 0 && write_all(session.archive_fd, v);
    if (!ok && end >= 0 && ftruncate(session.archive_fd, end) < 0)
        ok = false; /* a torn tail: readers skip it */
    lock(LOCK_UN);
    return ok;
}

/* ---- creating and joining ---- */

static bool read_header(int fd, struct archive_header *h)
{
    return pread(fd, h, sizeof *h, 0) == sizeof *h && memcmp(h->magic, ARCHIVE_MAGIC, sizeof h->magic) == 0 &&
           h->major == TRACE_MAJOR && memchr(h->run_id, 0, sizeof h->run_id);
}

/* Does a process that recorded here still live? (Ourselves before an exec counts.) */
static bool recorder_alive(int fd)
{
    struct chunk_header c;
    struct process_info p;
    off_t at = sizeof(struct archive_header);
    while (pread(fd, &c, sizeof c, at) == sizeof c && c.magic == CHUNK_MAGIC) {
        if (c.type == CHUNK_PROCESS && c.codec == CODEC_PLAIN &&
            pread(fd, &p, sizeof p, at + (off_t)sizeof c) == sizeof p && p.start_time &&
            process_start_time(p.pid) == p.start_time)
            return true;
        at += (off_t)sizeof c + c.stored_bytes;
    }
    return false;
}

static void run_id_new(char out[32])
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    uint64_t ms = clock_unix_ns() / 1000000, high = process_random(), low = process_random();
    for (int i = 9; i >= 0; i--, ms >>= 5) out[i] = digits[ms & 31];
    for (int i = 10; i < 18; i++, high >>= 5) out[i] = digits[high & 31];
    for (int i = 18; i < 26; i++, low >>= 5) out[i] = digits[low & 31];
    out[26] = 0;
}

static bool write_header(int fd)
{
    struct archive_header h = {.major = TRACE_MAJOR,
                               .minor = TRACE_MINOR,
                               .header_bytes = sizeof h,
                               .created_unix_ns = clock_unix_ns()};
    memcpy(h.magic, ARCHIVE_MAGIC, sizeof h.magic);
    run_id_new(h.run_id);
    memcpy(session.run_id, h.run_id, sizeof session.run_id);
    return pwrite(fd, &h, sizeof h, 0) == sizeof h;
}

/* The path still names the file we opened and locked? */
static bool same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

enum joined { JOINED, MOVED_AWAY, FAILED };

/* With the file locked: new, a live trace to join, or an old one to put aside. */
static enum joined settle(int fd, const char *path, tare_error *err)
{
    struct stat st;
    struct archive_header h;
    if (fstat(fd, &st) < 0 || !same_file(fd, path)) return MOVED_AWAY;
    if (!S_ISREG(st.st_mode)) {
        error_set(err, TARE_INVALID, "%s: not a regular file", path);
        return FAILED;
    }
    if (st.st_size == 0) {
        if (write_header(fd)) return JOINED;
        error_errno(err, "%s: cannot write", path);
        return FAILED;
    }
    if (!read_header(fd, &h)) {
        error_set(err, TARE_INVALID, "%s: exists and is not a trace; it is left as it is", path);
        return FAILED;
    }
    if (recorder_alive(fd)) {
        memcpy(session.run_id, h.run_id, sizeof session.run_id);
        return JOINED;
    }
    char old[sizeof session.path + 8];
    snprintf(old, sizeof old, "%s.old", path);
    if (rename(path, old) == 0 || errno == ENOENT) return MOVED_AWAY;
    error_errno(err, "%s: cannot keep the earlier trace as %s.old", path, path);
    return FAILED;
}

static void adopt(int fd)
{
    struct stat st;
    session.archive_fd = fd;
    if (fstat(fd, &st) < 0) return;
    session.archive_dev = st.st_dev;
    session.archive_ino = st.st_ino;
}

tare_status archive_join(const char *path, tare_error *err)
{
    for (int tries = 0; tries < 100; tries++) {
        int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
        if (fd < 0) return error_errno(err, "%s: cannot open the trace", path);
        while (flock(fd, LOCK_EX) < 0 && errno == EINTR) continue;
        enum joined j = settle(fd, path, err);
        flock(fd, LOCK_UN);
        if (j == JOINED) {
            adopt(fd);
            return TARE_OK;
        }
        close(fd);
        if (j == FAILED) return err ? err->status : TARE_IO;
    }
    return error_set(err, TARE_BUSY, "%s: other programs keep replacing the trace", path);
}

/* A forked child shares its parent's open file and so its lock: get one of our own. */
tare_status archive_reopen(void)
{
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", session.archive_fd);
    if (session.archive_fd < 0 || !still_ours()) return TARE_IO;
    int fd = open(link, O_RDWR | O_APPEND | O_CLOEXEC);
    if (fd < 0) fd = open(session.path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (fd < 0) return TARE_IO;
    close(session.archive_fd);
    session.archive_fd = fd;
    return still_ours() ? TARE_OK : TARE_IO;
}

void archive_leave(void)
{
    if (session.archive_fd >= 0 && still_ours()) close(session.archive_fd);
    session.archive_fd = -1;
}

/* ---- folding live files in ---- */

static bool append_chunk(void *ctx, enum chunk_type type, uint64_t process, const void *payload, size_t bytes)
{
    (void)ctx;
    return archive_append(type, process, payload, bytes);
}

static struct fold *fold_open(const char *base, uint64_t bytes, bool closed)
{
    struct fold *f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f == MAP_FAILED) return NULL;
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
    bool ok = f && fold_process(f);
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

static void fold_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0) return;
    void *p = fstat(fd, &st) == 0 && st.st_size >= LIVE_HEADER_BYTES
                  ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0)
                  : MAP_FAILED;
    close(fd);
    if (p == MAP_FAILED) return;
    const struct live_header *h = p;
    if (fold_valid(p, (uint64_t)st.st_size) && memcmp(h->run_id, session.run_id, sizeof h->run_id) == 0 &&
        process_start_time(h->process.pid) != h->process.start_time) {
        struct fold *f = fold_open(p, (uint64_t)st.st_size, false);
        if (f && fold_rest(f)) unlink(path);
        if (f) munmap(f, sizeof *f);
    }
    munmap(p, (size_t)st.st_size);
}

void archive_fold_dead(void)
{
    char dir[sizeof session.path];
    snprintf(dir, sizeof dir, "%s", session.path);
    char *slash = strrchr(dir, '/');
    const char *name = slash ? slash + 1 : session.path;
    if (slash) *(slash == dir ? slash + 1 : slash) = 0;
    const char *base = slash ? strrchr(session.path, '/') + 1 : name;
    DIR *d = opendir(slash ? dir : ".");
    if (!d) return;
    size_t n = strlen(base);
    for (struct dirent *e; (e = readdir(d));) {
        char path[sizeof session.path + 300];
        if (strncmp(e->d_name, base, n) != 0 || strncmp(e->d_name + n, ".live-", 6) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", slash ? dir : ".", e->d_name);
        fold_file(path);
    }
    closedir(d);
}

/* SPDX-License-Identifier: MIT
 * archive.c - FILE.tare: created by the first process, joined by its children and by any other program that
 * is given the same path while it records. Appends are whole chunks under a short file lock, so that a
 * failed one can be taken back. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/crc.h"
#include "trace/fold.h"
#include "trace/recorder.h"

enum { LOCK_TRIES_MS = 2000, APPEND = O_RDWR | O_APPEND | O_NONBLOCK };

/* ---- appending ---- */

/* Others hold it for the time of a write. One that was stopped in there must not stop us too. */
bool archive_lock(int fd, int tries_ms)
{
    for (int tries = 0; tries < tries_ms; tries++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK && errno != EINTR) return false;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return false;
}

static bool write_all(int fd, struct iovec v[2])
{
    while (v[0].iov_len + v[1].iov_len) {
        ssize_t n = writev(fd, v, 2);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = ENOSPC;
        if (n <= 0) return false;
        size_t first = (size_t)n < v[0].iov_len ? (size_t)n : v[0].iov_len, second = (size_t)n - first;
        v[0].iov_base = (char *)v[0].iov_base + first;
        v[0].iov_len -= first;
        v[1].iov_base = (char *)v[1].iov_base + second;
        v[1].iov_len -= second;
    }
    return true;
}

struct chunk_header archive_chunk_header(enum chunk_type type, uint64_t process, const void *payload,
                                         size_t bytes)
{
    struct chunk_header h = {.magic = CHUNK_MAGIC,
                             .type = (uint16_t)type,
                             .stored_bytes = (uint32_t)bytes,
                             .plain_bytes = (uint32_t)bytes,
                             .process = process};
    h.crc = crc32c(crc32c(0, &h, sizeof h), payload, bytes);
    return h;
}

/* With the lock held nobody else has written behind us, so what was written in part can be cut off again. */
bool archive_write(int fd, bool locked, struct iovec v[2])
{
    struct quiet q;
    process_quiet(&q);
    off_t end = locked ? lseek(fd, 0, SEEK_END) : -1;
    bool ok = write_all(fd, v);
    int error = errno;
    if (!ok && end >= 0 && ftruncate(fd, end) < 0) ok = false; /* a torn tail: readers skip it */
    process_unquiet(&q);
    if (locked) flock(fd, LOCK_UN);
    errno = error;
    return ok;
}

/* ---- creating and joining ---- */

/* Who owns what we create beside `path`? There are file systems that give it to somebody else: NFS with root squashed,
 * vfat. Asked by making such a file, without a name where that is possible. False: nothing can be made there. */
static bool find_owner(const char *path, struct stat *made)
{
    char name[sizeof session.path + 300];
    const char *slash = strrchr(path, '/');
    int n = snprintf(name, sizeof name, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    int fd = open(name, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) { /* core/file.c removes one that is left by a kill just here */
        snprintf(name + n, sizeof name - (size_t)n, "/.tare-%016llx", (unsigned long long)process_random());
        fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0) unlink(name);
    }
    if (fd < 0) return false;
    bool told = fstat(fd, made) == 0;
    close(fd);
    return told;
}

/* A regular file that belongs to who we run as, or to whom the file system makes of us: that one can read what we
 * record there in any case. Other people's files are left alone, also where a sticky folder such as /tmp lets them
 * plant one under a name that we would use. */
static bool is_own(const struct stat *st, const char *path)
{
    struct stat made;
    if (!S_ISREG(st->st_mode)) return false;
    return st->st_uid == geteuid() ||
           (find_owner(path, &made) && made.st_dev == st->st_dev && made.st_uid == st->st_uid);
}

static bool read_header(int fd, struct archive_header *h)
{
    return pread(fd, h, sizeof *h, 0) == sizeof *h && memcmp(h->magic, ARCHIVE_MAGIC, sizeof h->magic) == 0 &&
           h->major == TRACE_MAJOR && memchr(h->run_id, 0, sizeof h->run_id);
}

/* Do chunks follow one another from `at` to exactly the end of these bytes? *open: the process has some there, and no
 * END after them. */
static bool is_chain(const char *bytes, size_t n, size_t at, uint64_t uid, bool *open)
{
    struct chunk_header c;
    *open = false;
    while (n - at >= sizeof c) {
        memcpy(&c, bytes + at, sizeof c);
        if (c.magic != CHUNK_MAGIC || c.stored_bytes > n - at - sizeof c) return false;
        if (c.process == uid) *open = c.type != CHUNK_END;
        at += sizeof c + c.stored_bytes;
    }
    return at == n;
}

/* Whoever samples appends many times a second: the last chunks of the file mostly show one of its own. False: they do
 * not tell. */
static bool tail_shows_open(int fd, uint64_t uid)
{
    enum { TAIL_BYTES = 1 << 16 };
    const uint32_t magic = CHUNK_MAGIC;
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size < TAIL_BYTES) return false; /* a short walk */
    char *tail = process_memory(TAIL_BYTES);
    if (!tail) return false;
    bool chain = false, open = false;
    const char *at = pread(fd, tail, TAIL_BYTES, st.st_size - TAIL_BYTES) == TAIL_BYTES ? tail : NULL;
    while (!chain && at && (at = memmem(at, (size_t)(tail + TAIL_BYTES - at), &magic, sizeof magic))) {
        chain = is_chain(tail, TAIL_BYTES, (size_t)(at - tail), uid, &open);
        at++;
    }
    munmap(tail, TAIL_BYTES);
    return chain && open;
}

/* Is there an END of that process at or after `at`? */
static bool has_closed(int fd, uint64_t uid, off_t at)
{
    struct chunk_header c;
    if (tail_shows_open(fd, uid)) return false;
    while (pread(fd, &c, sizeof c, at) == sizeof c && c.magic == CHUNK_MAGIC) {
        if (c.type == CHUNK_END && c.process == uid) return true;
        at += (off_t)sizeof c + c.stored_bytes;
    }
    return false;
}

/* The pid of a process that still writes here, 0 for none; `sampling`: of one that does nothing but sample. (Ourselves
 * before an exec counts; before an earlier tare_stop does not.) */
static uint32_t find_writer(int fd, bool sampling)
{
    struct chunk_header c;
    struct process_info p;
    off_t at = sizeof(struct archive_header);
    while (pread(fd, &c, sizeof c, at) == sizeof c && c.magic == CHUNK_MAGIC) {
        if (c.type == CHUNK_PROCESS && c.codec == CODEC_PLAIN &&
            pread(fd, &p, sizeof p, at + (off_t)sizeof c) == sizeof p && p.start_time &&
            (!sampling || !p.mode) && process_start_time(p.pid) == p.start_time && !has_closed(fd, p.uid, at))
            return p.pid;
        at += (off_t)sizeof c + c.stored_bytes;
    }
    return 0;
}

uint32_t archive_sampler(int fd)
{
    return find_writer(fd, true);
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

static bool write_header(int fd, char run_id[32])
{
    struct archive_header h = {.major = TRACE_MAJOR,
                               .minor = TRACE_MINOR,
                               .header_bytes = sizeof h,
                               .created_unix_ns = clock_unix_ns()};
    memcpy(h.magic, ARCHIVE_MAGIC, sizeof h.magic);
    if (!run_id[0]) run_id_new(run_id);
    memcpy(h.run_id, run_id, sizeof h.run_id);
    struct quiet q;
    process_quiet(&q);
    bool ok = pwrite(fd, &h, sizeof h, 0) == sizeof h;
    process_unquiet(&q);
    return ok;
}

/* The path still names the file we opened and locked? */
static bool same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && lstat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* ---- live files beside a trace ---- */

/* Opened for reading if it is a file of our own; -1, with errno ENOENT if there is none at all. */
int archive_open_own(const char *path, struct stat *st)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0 || (fstat(fd, st) == 0 && is_own(st, path))) return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

/* The first part of a live file's header. False: it is none of ours. */
static bool read_live(const char *path, struct live_header *h)
{
    const size_t bytes = offsetof(struct live_header, used);
    struct stat st;
    int fd = archive_open_own(path, &st);
    if (fd < 0) return false;
    bool live =
        pread(fd, h, bytes, 0) == (ssize_t)bytes && memcmp(h->magic, LIVE_MAGIC, sizeof h->magic) == 0;
    close(fd);
    return live;
}

struct live_search {
    const char *run_id;
    bool found;
};

/* Does it belong to a process that lives, and to this trace? */
static void live_match(const char *path, void *arg)
{
    struct live_search *want = arg;
    struct live_header h;
    if (want->found || !read_live(path, &h)) return;
    want->found = memcmp(h.run_id, want->run_id, sizeof h.run_id) == 0 && h.process.start_time &&
                  process_start_time(h.process.pid) == h.process.start_time;
}

/* Whoever records has a live file: one look at the folder, however many processes have been in this trace. Only
 * where that finds nobody are its chunks walked through: of tare itself, which samples, there is no live file. */
static bool has_writer(int fd, const char *path, const char *run_id)
{
    struct live_search want = {run_id, false};
    fold_each_live(path, live_match, &want);
    return want.found || find_writer(fd, false);
}

/* The trace it belonged to is about to be replaced. */
static void live_remove(const char *path, void *unused)
{
    struct live_header h;
    (void)unused;
    if (read_live(path, &h)) unlink(path);
}

/* What a killed program left goes with its trace: X.live-P-U becomes OLD.live-P-U. */
static void live_aside(const char *path, void *arg)
{
    const char *old = arg;
    struct live_header h;
    char to[sizeof session.path + 300];
    const char *tail = strrchr(path, '.');
    int n = snprintf(to, sizeof to, "%s%s", old, tail);
    if (n > 0 && (size_t)n < sizeof to && read_live(path, &h)) rename(path, to);
}

/* May it be replaced? Only what is not there, or an earlier trace of our own. */
static bool is_free_or_ours(const char *path)
{
    struct stat st;
    struct archive_header h;
    int fd = archive_open_own(path, &st);
    if (fd < 0) return errno == ENOENT;
    bool ours = read_header(fd, &h);
    close(fd);
    return ours;
}

/* The earlier trace becomes PATH.old, or where somebody has a file of that name, PATH.old-2, PATH.old-3, ... */
static bool put_aside(const char *path)
{
    char old[sizeof session.path + 16];
    for (int n = 1; n < 10; n++) {
        snprintf(old, sizeof old, n == 1 ? "%s.old" : "%s.old-%d", path, n);
        if (!is_free_or_ours(old)) continue;
        fold_each_live(old, live_remove, NULL);
        fold_each_live(path, live_aside, old);
        return rename(path, old) == 0 || errno == ENOENT;
    }
    errno = EEXIST;
    return false;
}

enum { MOVED_AWAY, JOINED };

/* With the file locked: new, a live trace to join, or an old one to put aside. Below 0: a status. */
static int join_or_put_aside(int fd, const char *path, char run_id[32], tare_error *err)
{
    struct stat st;
    struct archive_header h;
    if (fstat(fd, &st) < 0 || !same_file(fd, path)) return MOVED_AWAY;
    if (!is_own(&st, path))
        return error_set(err, TARE_INVALID, "%s: %s; it is left as it is", path,
                         S_ISREG(st.st_mode) ? "belongs to another user" : "not a regular file");
    if (st.st_size == 0)
        return write_header(fd, run_id) ? JOINED : error_errno(err, "%s: cannot write", path);
    if (!read_header(fd, &h))
        return error_set(err, TARE_INVALID, "%s: exists and is not a trace; it is left as it is", path);
    if (has_writer(fd, path, h.run_id)) {
        memcpy(run_id, h.run_id, sizeof h.run_id);
        return JOINED;
    }
    if (put_aside(path)) return MOVED_AWAY;
    return error_errno(err, "%s: cannot keep the earlier trace as %s.old", path, path);
}

/* Between open and lock the file may be put aside by another program: then the name is looked at anew. Only what
 * join_or_put_aside() finds with the lock held counts. */
int archive_open(const char *path, char run_id[32], tare_error *err)
{
    for (int tries = 0; tries < 100; tries++) {
        int how = APPEND | O_CLOEXEC | O_NOFOLLOW;
        int fd = open(path, how | O_CREAT | O_EXCL, 0600);
        if (fd < 0 && errno == EEXIST && (fd = open(path, how)) < 0 && errno == ENOENT)
            continue; /* gone meanwhile */
        if (fd >= 0) fd = process_fd(fd);
        if (fd < 0 && errno == ELOOP)
            return error_set(err, TARE_INVALID, "%s: is a link; a trace is not written through links", path);
        if (fd < 0) return error_errno(err, "%s: cannot open the trace", path);
        if (!archive_lock(fd, LOCK_TRIES_MS)) {
            close(fd);
            return error_set(err, TARE_BUSY, "%s: another program holds its lock", path);
        }
        int how_it_went = join_or_put_aside(fd, path, run_id, err);
        if (how_it_went == JOINED) return fd;
        close(fd);
        if (how_it_went < 0) return how_it_went;
    }
    return error_set(err, TARE_BUSY, "%s: other programs keep replacing the trace", path);
}

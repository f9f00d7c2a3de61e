/* SPDX-License-Identifier: MIT
 * file.c - see file.h. All names are resolved against one open folder, so that the temporary file, the rename
 * and the sync speak of the same place even if the path is moved meanwhile. */
#include "core/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/rng.h"

static int rename_in(int folder, const char *from, const char *to, unsigned flags)
{
    if (!flags) return renameat(folder, from, folder, to);
    return renameat2(folder, from, folder, to, flags);
}

#define FILE_IO_SYSTEM          \
    {                           \
        write, fsync, rename_in \
    }
const struct file_io file_io_system = FILE_IO_SYSTEM;
struct file_io file_io = FILE_IO_SYSTEM;

/* A file on its way into a folder. Paths are copied: PATH_MAX bounds what the kernel takes anyway. */
struct incoming {
    int folder, fd;
    char path[PATH_MAX]; /* as resolved; folder part ends before `base` */
    const char *base;
    char temp[32]; /* "" when there is none to remove */
};

tare_status file_write_all(int fd, const void *bytes, size_t n, const char *name, tare_error *err)
{
    const char *at = bytes;
    while (n) {
        ssize_t wrote = file_io.write(fd, at, n > SSIZE_MAX ? SSIZE_MAX : n);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return error_errno(err, "%s: cannot write", name);
        if (wrote == 0) return error_set(err, TARE_IO, "%s: cannot write: no more bytes are taken", name);
        at += wrote;
        n -= (size_t)wrote;
    }
    return TARE_OK;
}

static tare_status sync_fd(int fd, const char *name, tare_error *err)
{
    while (file_io.fsync(fd) < 0) {
        if (errno == EINTR) continue;
        if (errno == EINVAL || errno == EROFS) return TARE_OK; /* this file system has no such notion */
        return error_errno(err, "%s: cannot sync", name);
    }
    return TARE_OK;
}

static tare_status exists(const char *path, tare_error *err)
{
    return error_set(err, TARE_IO, "%s: already exists; not replaced", path);
}

/* Find the folder and the name in it, following a link that is already there. */
static tare_status locate(struct incoming *in, const char *path, bool is_link, tare_error *err)
{
    if (is_link) {
        if (!realpath(path, in->path)) return error_errno(err, "%s: cannot follow the link", path);
    } else if ((size_t)snprintf(in->path, sizeof in->path, "%s", path) >= sizeof in->path) {
        return error_set(err, TARE_INVALID, "%.60s...: the name is too long", path);
    }
    char *slash = strrchr(in->path, '/');
    in->base = slash ? slash + 1 : in->path;
    if (!in->base[0]) return error_set(err, TARE_INVALID, "%s: names a folder, not a file", path);
    const char *folder = slash == in->path ? "/" : in->path;
    if (slash) *slash = 0;
    in->folder = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return in->folder < 0 ? error_errno(err, "%s: cannot open its folder", path) : TARE_OK;
}

static uint64_t some_number(void)
{
    uint64_t n;
    if (getrandom(&n, sizeof n, GRND_NONBLOCK) == (ssize_t)sizeof n) return n;
    n = clock_unix_ns() ^ (uint64_t)getpid() << 40; /* O_EXCL decides; this need only be unlikely to meet */
    return rng_splitmix(&n);
}

static tare_status open_temp(struct incoming *in, const char *path, mode_t mode, tare_error *err)
{
    for (int tries = 0; tries < 100; tries++) {
        snprintf(in->temp, sizeof in->temp, ".tare-%016llx", (unsigned long long)some_number());
        in->fd = openat(in->folder, in->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (in->fd >= 0) {
            flock(in->fd, LOCK_EX | LOCK_NB); /* somebody's: see sweep() */
            return TARE_OK;
        }
        if (errno != EEXIST && errno != EINTR) break;
    }
    in->temp[0] = 0;
    return error_errno(err, "%s: cannot create a file beside it", path);
}

/* Give the temporary file its name. Where renameat2 is unknown, a hard link fails on an existing name too. */
static tare_status publish(struct incoming *in, const char *path, unsigned flags, tare_error *err)
{
    bool keep = flags & FILE_NO_REPLACE;
    if (file_io.rename(in->folder, in->temp, in->base, keep ? RENAME_NOREPLACE : 0) == 0) {
        in->temp[0] = 0;
        return TARE_OK;
    }
    if (keep && (errno == EINVAL || errno == ENOSYS)) {
        if (linkat(in->folder, in->temp, in->folder, in->base, 0) == 0) return TARE_OK; /* temp goes later */
    }
    if (keep && errno == EEXIST) return exists(path, err);
    return error_errno(err, "%s: cannot rename the finished file to it", path);
}

static tare_status close_fd(int *fd, const char *path, tare_error *err)
{
    int old = *fd;
    *fd = -1;
    if (old >= 0 && close(old) < 0 && errno != EINTR) return error_errno(err, "%s: cannot close", path);
    return TARE_OK;
}

/* A pipe, a terminal, a device: nothing to replace and nothing to sync. */
static tare_status write_in_place(const char *path, const void *bytes, size_t n, tare_error *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return error_errno(err, "%s: cannot open", path);
    tare_status s = file_write_all(fd, bytes, n, path, err);
    tare_status closed = close_fd(&fd, path, s < 0 ? NULL : err);
    return s < 0 ? s : closed;
}

/* ---- what killed writers left ---- */

enum { LEFTOVER_S = 3600 }; /* a file is written in seconds, also where locks do not work */

/* ".tare-" and 16 hexadecimal digits, as open_temp() names them */
static bool is_temp_name(const char *name)
{
    return strncmp(name, ".tare-", 6) == 0 && strspn(name + 6, "0123456789abcdef") == 16 && !name[22];
}

/* Old, our user's, and nobody writes it: its writer holds a lock as long as it lives. */
static bool is_leftover(int folder, const char *name)
{
    struct stat st;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return false;
    bool old = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
               st.st_mtime + LEFTOVER_S < (time_t)(clock_unix_ns() / 1000000000);
    bool left = old && flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return left;
}

/* Whatever goes wrong here is no trouble of whoever writes. */
static void sweep(int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0) close(fd);
        return;
    }
    for (struct dirent *e; (e = readdir(d));)
        if (is_temp_name(e->d_name) && is_leftover(folder, e->d_name)) unlinkat(folder, e->d_name, 0);
    closedir(d);
}

tare_status file_write_atomic(const char *path, const void *bytes, size_t n, unsigned flags, tare_error *err)
{
    struct stat link, target;
    bool there = lstat(path, &link) == 0;
    if (there && (flags & FILE_NO_REPLACE)) return exists(path, err);
    if (there && stat(path, &target) == 0) {
        if (S_ISDIR(target.st_mode)) return error_set(err, TARE_INVALID, "%s: is a folder, not a file", path);
        if (!S_ISREG(target.st_mode)) return write_in_place(path, bytes, n, err);
    }
    struct incoming in = {.folder = -1, .fd = -1};
    tare_status s = locate(&in, path, there && S_ISLNK(link.st_mode), err);
    if (s < 0) goto out;
    if ((s = open_temp(&in, path, flags & FILE_SHARED ? 0666 : 0600, err)) < 0) goto out;
    if ((s = file_write_all(in.fd, bytes, n, path, err)) < 0) goto out;
    if ((s = sync_fd(in.fd, path, err)) < 0) goto out;
    if ((s = close_fd(&in.fd, path, err)) < 0) goto out;
    if ((s = publish(&in, path, flags, err)) < 0) goto out;
    sweep(in.folder);
    s = sync_fd(in.folder, path, err);
out:
    if (in.fd >= 0) close(in.fd);
    if (in.temp[0]) unlinkat(in.folder, in.temp, 0);
    if (in.folder >= 0) close(in.folder);
    return s;
}

tare_status file_make_folders(const char *path, tare_error *err)
{
    char part[PATH_MAX];
    if ((size_t)snprintf(part, sizeof part, "%s", path) >= sizeof part)
        return error_set(err, TARE_INVALID, "the folder's name is too long: %.60s...", path);
    for (char *p = part + 1; part[0] && *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        mkdir(part, 0777); /* whatever goes wrong shows at the last one */
        *p = '/';
    }
    if (mkdir(part, 0777) < 0 && errno != EEXIST) return error_errno(err, "%s: cannot make the folder", path);
    return TARE_OK;
}

/* ---- reading ---- */

static tare_status check_mappable(const char *path, const struct stat *st, tare_error *err)
{
    if (S_ISDIR(st->st_mode)) return error_set(err, TARE_INVALID, "%s: is a folder, not a file", path);
    if (!S_ISREG(st->st_mode)) return error_set(err, TARE_INVALID, "%s: is not a regular file", path);
    if (st->st_size == 0) return error_set(err, TARE_FORMAT, "%s: the file is empty", path);
    if ((uint64_t)st->st_size > SIZE_MAX / 2) return error_set(err, TARE_FORMAT, "%s: is too large", path);
    return TARE_OK;
}

tare_status file_map(const char *path, struct file_view *out, tare_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* never waits for a pipe's writer */
    if (fd < 0) return error_errno(err, "%s: cannot open", path);
    struct stat st;
    tare_status s =
        fstat(fd, &st) < 0 ? error_errno(err, "%s: cannot look at", path) : check_mappable(path, &st, err);
    if (s == TARE_OK) {
        void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            s = error_errno(err, "%s: cannot map", path);
        else
            *out = (struct file_view){data, (size_t)st.st_size};
    }
    close(fd);
    return s;
}

void file_unmap(struct file_view *view)
{
    if (view->size) munmap((void *)(uintptr_t)view->data, view->size);
    *view = (struct file_view)FILE_VIEW_INIT;
}

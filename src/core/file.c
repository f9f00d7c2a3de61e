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

static int open_unnamed(int folder, mode_t mode)
{
    return openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
}

#define FILE_IO_SYSTEM                        \
    {                                         \
        open_unnamed, write, fsync, rename_in \
    }
const struct file_io file_io_system = FILE_IO_SYSTEM;
struct file_io file_io = FILE_IO_SYSTEM;

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
        if (errno == EINVAL || errno == EROFS || errno == EBADF)
            return TARE_OK; /* no such notion here; O_PATH */
        return error_errno(err, "%s: cannot sync", name);
    }
    return TARE_OK;
}

static void close_quietly(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static tare_status exists(const char *path, tare_error *err)
{
    return error_set(err, TARE_IO, "%s: already exists; not replaced", path);
}

/* Find the folder and the name in it, following a link that is already there. A folder that may be written but not
 * read is as good, except that it cannot be synced. */
static tare_status locate(struct file_out *f, bool is_link, tare_error *err)
{
    if (is_link) {
        if (!realpath(f->name, f->path)) return error_errno(err, "%s: cannot follow the link", f->name);
    } else if ((size_t)snprintf(f->path, sizeof f->path, "%s", f->name) >= sizeof f->path) {
        return error_set(err, TARE_INVALID, "%.60s...: the name is too long", f->name);
    }
    char *slash = strrchr(f->path, '/');
    f->base = slash ? (size_t)(slash - f->path) + 1 : 0;
    if (!f->path[f->base]) return error_set(err, TARE_INVALID, "%s: names a folder, not a file", f->name);
    const char *folder = slash == f->path ? "/" : f->path;
    if (slash) *slash = 0;
    f->folder = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->folder < 0 && errno == EACCES)
        f->folder = open(slash ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return f->folder < 0 ? error_errno(err, "%s: cannot create", f->name) : TARE_OK;
}

static uint64_t some_number(void)
{
    uint64_t n;
    if (getrandom(&n, sizeof n, GRND_NONBLOCK) == (ssize_t)sizeof n) return n;
    n = clock_unix_ns() ^ (uint64_t)getpid() << 40; /* O_EXCL decides; this need only be unlikely to meet */
    return rng_splitmix(&n);
}

enum { NAME_TRIES = 100 };

static void name_temp(struct file_out *f)
{
    snprintf(f->temp, sizeof f->temp, ".tare-%016llx", (unsigned long long)some_number());
}

/* The name by which a file that has none yet is linked. */
static void own_link(const struct file_out *f, char out[32])
{
    snprintf(out, 32, "/proc/self/fd/%d", f->fd);
}

/* A file without a name goes with its writer, however that ends; one beside the target where the file system has no
 * such files, or no /proc to name them by later. */
static tare_status open_temp(struct file_out *f, tare_error *err)
{
    char link[32];
    mode_t mode = f->flags & FILE_SHARED ? 0666 : 0600;
    f->fd = file_io.unnamed(f->folder, mode);
    own_link(f, link);
    if (f->fd >= 0 && access(link, F_OK) < 0) close_quietly(&f->fd);
    for (int tries = 0; tries < NAME_TRIES && f->fd < 0; tries++) {
        name_temp(f);
        f->fd = openat(f->folder, f->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (f->fd < 0 && errno != EEXIST && errno != EINTR) break;
    }
    if (f->fd >= 0) {
        flock(f->fd, LOCK_EX | LOCK_NB); /* somebody's: see sweep() */
        return TARE_OK;
    }
    f->temp[0] = 0;
    return error_errno(err, "%s: cannot create", f->name);
}

/* A file without a name gets one, for the moment until it is renamed: a link does not replace. */
static tare_status link_temp(struct file_out *f, tare_error *err)
{
    char link[32];
    own_link(f, link);
    for (int tries = 0; tries < NAME_TRIES; tries++) {
        name_temp(f);
        if (linkat(AT_FDCWD, link, f->folder, f->temp, AT_SYMLINK_FOLLOW) == 0) return TARE_OK;
        if (errno != EEXIST && errno != EINTR) break;
    }
    f->temp[0] = 0;
    return error_errno(err, "%s: cannot name the finished file", f->name);
}

/* Give the finished file its name. Where renameat2 is unknown, a hard link fails on an existing name too. */
static tare_status publish(struct file_out *f, tare_error *err)
{
    bool keep = f->flags & FILE_NO_REPLACE;
    const char *base = f->path + f->base;
    tare_status s = f->temp[0] ? TARE_OK : link_temp(f, err);
    if (s < 0) return s;
    if (file_io.rename(f->folder, f->temp, base, keep ? RENAME_NOREPLACE : 0) == 0) {
        f->temp[0] = 0;
        return TARE_OK;
    }
    if (keep && (errno == EINVAL || errno == ENOSYS)) {
        if (linkat(f->folder, f->temp, f->folder, base, 0) == 0) return TARE_OK; /* temp goes later */
    }
    if (keep && errno == EEXIST) return exists(f->name, err);
    return error_errno(err, "%s: cannot rename the finished file to it", f->name);
}

/* ---- what killed writers left ---- */

enum { LEFTOVER_S = 3600 }; /* a file is written in seconds, also where locks do not work */

/* ".tare-" and 16 hexadecimal digits, as name_temp() makes them */
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

/* ---- who put it there ---- */

bool file_is_strangers(const char *path)
{
    char folder[PATH_MAX];
    struct stat it, in;
    const char *slash = strrchr(path, '/');
    if (slash == path) slash++; /* the root's name is its slash */
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    if (lstat(path, &it) < 0 || stat(folder, &in) < 0 || !(in.st_mode & S_IWOTH)) return false;
    return it.st_uid != geteuid() && it.st_uid != 0 && it.st_uid != in.st_uid;
}

/* ---- writing ---- */

/* A regular file is written beside its name and renamed at the commit, so that nobody ever sees half of
 * it. A pipe or a device cannot be replaced and is written directly (folder stays -1). A shared file must
 * be writable itself: the rename alone would also replace one that is write-protected. */
tare_status file_out_open(struct file_out *f, const char *path, unsigned flags, tare_error *err)
{
    struct stat link, target;
    *f = (struct file_out)FILE_OUT_INIT;
    f->name = path;
    f->flags = flags;
    if (!*path) return error_set(err, TARE_INVALID, "the name of the file to write is empty");
    bool there = lstat(path, &link) == 0, known = there && stat(path, &target) == 0;
    if (there && (flags & FILE_NO_REPLACE)) return exists(path, err);
    if (there && S_ISLNK(link.st_mode) && file_is_strangers(path)) /* as the kernel does for open() */
        return error_set(err, TARE_IO, "%s: a link that another user made is not followed", path);
    if (known && S_ISDIR(target.st_mode))
        return error_set(err, TARE_INVALID, "%s: is a folder, not a file; name a file to write", path);
    if (known && !S_ISREG(target.st_mode)) {
        f->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return f->fd < 0 ? error_errno(err, "%s: cannot open for writing", path) : TARE_OK;
    }
    if (known && (flags & FILE_SHARED) && access(path, W_OK) < 0)
        return error_errno(err, "%s: cannot be overwritten", path);
    tare_status s = locate(f, there && S_ISLNK(link.st_mode), err);
    if (s == TARE_OK) s = open_temp(f, err);
    if (s < 0) file_out_close(f);
    return s;
}

tare_status file_out_commit(struct file_out *f, tare_error *err)
{
    tare_status s = TARE_OK;
    if (f->folder < 0) { /* a pipe, a terminal, a device: nothing to replace and nothing to sync */
        int fd = f->fd;
        f->fd = -1;
        if (close(fd) < 0 && errno != EINTR) s = error_errno(err, "%s: cannot close", f->name);
        return s;
    }
    if ((s = sync_fd(f->fd, f->name, err)) < 0) goto out;
    if ((s = publish(f, err)) < 0) goto out;
    sweep(f->folder);
    s = sync_fd(f->folder, f->name, err); /* the new name outlives a power cut only with its folder */
out:
    file_out_close(f);
    return s;
}

void file_out_close(struct file_out *f)
{
    close_quietly(&f->fd);
    if (f->temp[0]) unlinkat(f->folder, f->temp, 0);
    close_quietly(&f->folder);
    f->temp[0] = 0;
}

tare_status file_write_atomic(const char *path, const void *bytes, size_t n, unsigned flags, tare_error *err)
{
    struct file_out f;
    tare_status s = file_out_open(&f, path, flags, err);
    if (s < 0) return s;
    s = file_write_all(f.fd, bytes, n, path, err);
    if (s == TARE_OK) s = file_out_commit(&f, err);
    file_out_close(&f);
    return s;
}

bool file_is_here(const char *name)
{
    return !strchr(name, '/') && access(name, F_OK) == 0;
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

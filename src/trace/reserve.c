/* SPDX-License-Identifier: MIT
 * reserve.c - see reserve.h. Runs inside the traced program. */
#include "trace/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "trace/recorder.h"

#define BCACHEFS 0xca451a4eu /* its magic, which has left linux/magic.h again */
#define ROOM_LEFT (UINT64_C(256) << 20)

/* btrfs and bcachefs write each page to a new place: what fallocate reserved does not help there, unless the file,
 * while it is empty, is told to stay where it is. Elsewhere the flag is refused, and not needed. Who takes it is known
 * by that, also below an overlay. */
bool reserve_in_place(int fd)
{
    struct statfs fs;
    int flags = 0;
    if (fstatfs(fd, &fs) == 0 && (uint32_t)fs.f_type == BCACHEFS) return true;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0) return false;
    flags |= FS_NOCOW_FL;
    return ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
}

bool reserve_is_nearly_full(const char *path, uint64_t *blocks)
{
    struct statfs fs;
    if (statfs(path, &fs) < 0) return false;
    if (blocks) *blocks = fs.f_bavail;
    return fs.f_bavail < fs.f_blocks / 32 && (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize < ROOM_LEFT;
}

/* fallocate where the file system has it; elsewhere write zeros, which reserves as well. */
static int reserve_loudly(int fd, uint64_t from, uint64_t bytes)
{
    while (fallocate(fd, 0, (off_t)from, (off_t)bytes) < 0) {
        if (errno == EINTR) continue;
        if (errno != EOPNOTSUPP && errno != ENOSYS) return -1;
        static const char zeros[4096];
        for (uint64_t done = 0; done < bytes;) {
            size_t n = bytes - done < sizeof zeros ? (size_t)(bytes - done) : sizeof zeros;
            ssize_t w = pwrite(fd, zeros, n, (off_t)(from + done));
            if (w <= 0) return -1;
            done += (uint64_t)w;
        }
        return 0;
    }
    return 0;
}

int reserve_disk(int fd, uint64_t from, uint64_t bytes)
{
    struct quiet q;
    process_quiet(&q);
    int r = reserve_loudly(fd, from, bytes);
    process_unquiet(&q);
    return r;
}

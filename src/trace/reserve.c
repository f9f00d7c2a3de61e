/* SPDX-License-Identifier: MIT
 * reserve.c - see reserve.h. Runs inside the traced program. */
#include "trace/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "trace/recorder.h"

/* btrfs and bcachefs write each page to a new place: what fallocate reserved does not help there, unless the file,
 * while it is empty, is told to stay where it is. Elsewhere the flag is refused, and not needed. */
void reserve_in_place(int fd)
{
    int flags = 0;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0) return;
    flags |= FS_NOCOW_FL;
    (void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
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

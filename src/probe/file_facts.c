/* SPDX-License-Identifier: MIT
 * file_facts.c - see file_facts.h. */
#include "probe/file_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static const struct fs_kind fs_kinds[] = {
    {EXT4_SUPER_MAGIC, "ext4", true},
    {XFS_SUPER_MAGIC, "xfs", true},
    {BTRFS_SUPER_MAGIC, "btrfs", true},
    {TMPFS_MAGIC, "tmpfs", true},
    {OVERLAYFS_SUPER_MAGIC, "overlay", true},
    {F2FS_SUPER_MAGIC, "f2fs", true},
    {0x2fc12fc1, "zfs", true},
    {NFS_SUPER_MAGIC, "nfs", false},
    {0xfe534d42, "smb", false},
    {0x00c36400, "ceph", false},
    {0x0bd00bd0, "lustre", false},
    {FUSE_SUPER_MAGIC, "fuse", false},
    {V9FS_MAGIC, "9p", false},
    {0, "unknown", true},
};

const struct fs_kind *fs_kind_of(long magic)
{
    const struct fs_kind *k = fs_kinds;
    while (k->magic && (k->magic & 0xffffffff) != (magic & 0xffffffff)) k++;
    return k;
}

static const struct {
    const char *name;
    unsigned char n, first[6];
} packings[] = {
    {"gzip", 2, {0x1f, 0x8b}},
    {"zstd", 4, {0x28, 0xb5, 0x2f, 0xfd}},
    {"lz4", 4, {0x04, 0x22, 0x4d, 0x18}},
    {"xz", 6, {0xfd, '7', 'z', 'X', 'Z', 0}},
    {"bzip2", 3, {'B', 'Z', 'h'}},
    {"zip", 4, {'P', 'K', 3, 4}},
    {"png", 4, {0x89, 'P', 'N', 'G'}},
    {"jpeg", 3, {0xff, 0xd8, 0xff}},
};

/* What the first n bytes of a file say it is packed with, or NULL. */
static const char *packed_by(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < sizeof packings / sizeof *packings; i++)
        if (n >= packings[i].n && memcmp(bytes, packings[i].first, packings[i].n) == 0)
            return packings[i].name;
    return NULL;
}

/* Of files that one neither owns nor may write mincore says that all of it is in memory, and cachestat nothing. */
static bool may_be_told(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid()) return true;
    return faccessat(fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

/* Mapped piece by piece: a mapping of the whole could be larger than the address space allowed. */
static struct resident resident_by_mincore(int fd, uint64_t offset, uint64_t n)
{
    enum { WINDOW = 64 << 20 };
    unsigned char seen[WINDOW / 4096];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = offset / page * page, end = offset + n, in = 0,
             all = 0;
    if (!may_be_told(fd)) return (struct resident){NAN, "the kernel tells only who may write the file"};
    for (; from < end; from += WINDOW) {
        size_t size = (size_t)(end - from < WINDOW ? end - from : WINDOW), pages = (size + page - 1) / page;
        void *at = mmap(NULL, size, PROT_NONE, MAP_SHARED, fd, (off_t)from);
        if (at == MAP_FAILED) return (struct resident){NAN, "mmap is refused here"};
        int failed = mincore(at, size, seen);
        munmap(at, size);
        if (failed) return (struct resident){NAN, "mincore is refused here"};
        for (size_t i = 0; i < pages; i++) in += seen[i] & 1;
        all += pages;
    }
    return (struct resident){(double)in / (double)all, "mincore"};
}

struct resident file_resident(int fd, uint64_t offset, uint64_t n)
{
    enum { SYS_CACHESTAT = 451 };
    struct {
        uint64_t offset, n;
    } range = {offset, n};
    struct {
        uint64_t cached, dirty, writeback, evicted, recently;
    } seen;
    if (n == 0) return (struct resident){NAN, "nothing in it"};
    if (syscall(SYS_CACHESTAT, fd, &range, &seen, 0) < 0) return resident_by_mincore(fd, offset, n);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), pages = (offset + n - 1) / page - offset / page + 1;
    return (struct resident){fmin(1, (double)seen.cached / (double)pages), "cachestat"};
}

tare_status file_facts_read(int fd, const char *name, struct file_facts *out, tare_error *err)
{
    unsigned char first[8];
    struct stat st;
    struct statfs fs;
    if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0) return error_errno(err, "%s", name);
    if (!S_ISREG(st.st_mode)) return error_set(err, TARE_INVALID, "%s: is not a regular file", name);
    *out = (struct file_facts){.size = (uint64_t)st.st_size, .fs = fs_kind_of((long)fs.f_type)};
    out->resident = file_resident(fd, 0, out->size); /* before the first bytes are read */
    ssize_t n = pread(fd, first, sizeof first, 0);
    if (n < 0) return error_errno(err, "%s", name);
    out->packed = packed_by(first, (size_t)n);
    return TARE_OK;
}

/* SPDX-License-Identifier: MIT
 * old_glibc.h - what a glibc of 2012 does not have yet and the kernel does: for the portable build only, put in front of each file. An old
 * kernel answers ENOSYS, which the callers know from everywhere else. */
#ifndef TARE_OLD_GLIBC_H
#define TARE_OLD_GLIBC_H

#include <features.h>
#if !__GLIBC_PREREQ(2, 28)
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1U
#endif
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1U
#endif
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

static inline ssize_t old_getrandom(void *to, size_t n, unsigned flags)
{
    return syscall(SYS_getrandom, to, n, flags);
}

static inline int old_memfd_create(const char *name, unsigned flags)
{
    return (int)syscall(SYS_memfd_create, name, flags);
}

static inline int old_renameat2(int from_folder, const char *from, int to_folder, const char *to,
                                unsigned flags)
{
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

static inline ssize_t old_preadv2(int fd, const struct iovec *v, int n, off_t at, int flags)
{
    return syscall(SYS_preadv2, fd, v, n, (unsigned long)at, 0UL, flags);
}

static inline int old_epoll_pwait2(int fd, struct epoll_event *events, int n, const struct timespec *wait,
                                   const sigset_t *mask)
{
    return (int)syscall(SYS_epoll_pwait2, fd, events, n, wait, mask, _NSIG / 8);
}

static inline void old_explicit_bzero(void *p, size_t n)
{
    memset(p, 0, n);
    __asm__ __volatile__("" : : "r"(p) : "memory"); /* so that no compiler finds it idle */
}

/* Some are declared all the same: they take other names. */
#define getrandom old_getrandom
#define memfd_create old_memfd_create
#define renameat2 old_renameat2
#define preadv2 old_preadv2
#define epoll_pwait2 old_epoll_pwait2
#define explicit_bzero old_explicit_bzero
#endif

#endif

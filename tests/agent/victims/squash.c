/* SPDX-License-Identifier: MIT
 * squash.c - preloaded: every regular file seems to belong to somebody else, as on NFS with root squashed. */
#include <dlfcn.h>
#include <stddef.h>
#include <sys/stat.h>

int fstat(int fd, struct stat *st)
{
    int (*real)(int, struct stat *) = (int (*)(int, struct stat *))dlsym(RTLD_NEXT, "fstat");
    int r = real ? real(fd, st) : -1;
    if (r == 0 && S_ISREG(st->st_mode)) st->st_uid = 12345;
    return r;
}

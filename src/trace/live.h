/* SPDX-License-Identifier: MIT
 * live.h - the live file of one process: a shared mapping handed out in extents that are never given back.
 * Disk is reserved before memory is touched, so that a full disk is a refused extent and no SIGBUS. Where a file
 * system does not keep that promise, or somebody truncates the file, the page that is missing is replaced by memory
 * and recording ends: the program never notices. It ends, too, before a store could wait for a full disk. */
#ifndef TRACE_LIVE_H
#define TRACE_LIVE_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/error.h"
#include "trace/format.h"

/* A file that we keep open. The program may close every descriptor it finds, as daemons do, and get the number back for
 * a file of its own: ours is known by its place on the disk. In process.c. */
struct own_file {
    int fd; /* -1: none */
    dev_t dev;
    ino_t ino; /* 0: none */
};
#define OWN_FILE_INIT {-1, 0, 0}
bool own_file_take(struct own_file *f, int fd);  /* ours from now on; false: the system does not know it */
bool own_file_is_open(const struct own_file *f); /* is the descriptor still that of our file? */
/* The same, opened again by its path where it is not; the path may name another file by now, which is no help. */
bool own_file_reach(struct own_file *f, const char *path, int how);
void own_file_close(struct own_file *f); /* unless the number is the program's by now */

struct live {
    struct own_file file;
    char *base;      /* NULL: not open */
    uint64_t room;   /* bytes of address space it may come to */
    uint64_t mapped; /* atomic: bytes of it that are mapped by now; more follow in place */
    uint64_t backed; /* bytes of file reserved so far */
    uint32_t lock;
    bool open;   /* extents may be had */
    bool broken; /* atomic: a page of the file is missing, or may be waited for: nothing more is recorded */
    bool waits;  /* its file system lets a store wait for room */
    pid_t pid;   /* whose mapping it is: a forked child has none */
    uint64_t refused_at; /* clock ticks of the last refusal, 0: none. Nobody tries again for LIVE_RETRY_NS */
    struct told_end end; /* why nobody will close it; zeros: no reason yet */
    bool end_told;       /* it stands in the file */
    char path[4096];
};

#define LIVE_INIT {.file = OWN_FILE_INIT}
enum { LIVE_RETRY_NS = 100000000 };

static inline struct live_header *live_header(const struct live *l)
{
    return (struct live_header *)(void *)l->base;
}

/* Create the file, reserve and map its first bytes; it may grow to `room` bytes of address space. */
tare_status live_open(struct live *l, const char *path, uint64_t room, tare_error *err);

/* A zeroed extent, or NULL when memory or disk is spent. Safe from any thread; never blocks for long.
 * `base` is the mapping the caller belongs to: one of an ended session gets nothing. */
struct extent *live_alloc(struct live *l, const char *base, enum extent_type type, uint64_t bytes);

static inline bool live_is_broken(const struct live *l)
{
    return __atomic_load_n(&l->broken, __ATOMIC_ACQUIRE);
}

/* Was an extent refused just now? Asking again would only cost system calls. */
bool live_refuses(const struct live *l);

/* A record that nobody will close says why, to whoever reads the live file. Not in a signal handler. */
void live_tell_end(struct live *l, enum record_end why);

/* By the helper, from time to time: a nearly full disk on which a store may wait is left to the program. */
void live_leave_full_disk(struct live *l);

/* Let go of file and disk, but keep the addresses valid: late writers hit private memory. */
void live_abandon(struct live *l, int remove_file);

/* In a forked child, which has no such mapping: forget the parent's file. */
void live_disown(struct live *l);

#endif

/* SPDX-License-Identifier: MIT
 * live.h - the live file of one process: a shared mapping handed out in extents that are never given back.
 * Disk is reserved before memory is touched, so that a full disk is a refused extent and no SIGBUS. Where a file
 * system does not keep that promise, or somebody truncates the file, the page that is missing is replaced by memory
 * and recording ends: the program never notices. */
#ifndef TRACE_LIVE_H
#define TRACE_LIVE_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/error.h"
#include "trace/format.h"

struct live {
    int fd;
    dev_t dev;
    ino_t ino;
    char *base;      /* NULL: not open */
    uint64_t room;   /* bytes of address space it may come to */
    uint64_t mapped; /* atomic: bytes of it that are mapped by now; more follow in place */
    uint64_t backed; /* bytes of file reserved so far */
    uint32_t lock;
    bool open;           /* extents may be had */
    bool broken;         /* atomic: a page of the file was missing, nothing more is recorded */
    pid_t pid;           /* whose mapping it is: a forked child has none */
    size_t page;         /* bytes of one */
    uint64_t refused_at; /* clock ticks of the last refusal, 0: none. Nobody tries again for LIVE_RETRY_NS */
    char path[4096];
};

#define LIVE_INIT {.fd = -1}
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

/* Let go of file and disk, but keep the addresses valid: late writers hit private memory. */
void live_abandon(struct live *l, int remove_file);

/* In a forked child, which has no such mapping: forget the parent's file. */
void live_disown(struct live *l);

#endif

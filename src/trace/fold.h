/* SPDX-License-Identifier: MIT
 * fold.h - a live file -> the chunks an archive would hold. Used at a clean end on our own mapping, on the
 * files of processes that died, and by the reader, which so knows only one way in. The bytes are not
 * trusted: a file that makes no sense yields fewer chunks, never a wild read. */
#ifndef TRACE_FOLD_H
#define TRACE_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "trace/format.h"
#include "trace/pack.h"

enum { FOLD_BYTES = 256 << 10 };

/* Takes one chunk; false stops the fold. */
typedef bool fold_emit(void *ctx, enum chunk_type type, uint64_t process, const void *payload, size_t bytes);

struct fold {
    const char *base; /* the live file, all of it */
    uint64_t bytes;
    unsigned shift;
    bool closed; /* what END shall say */
    fold_emit *emit;
    void *ctx;
    uint64_t damaged; /* out: extents or nodes that made no sense */
    uint64_t budget;  /* bytes of nodes and histograms still to be believed: no more than the file holds */
    struct raw_event events[PACK_SLOTS_MAX]; /* a chunk at rest: the program may be writing to its own */
    struct packer packer;
    uint8_t out[FOLD_BYTES];
    uint32_t numbers[1 << 10]; /* tree: number of the open node at each depth */
};

/* Calls `fn` with the path of each live file beside a trace, by its name: what is in it is for `fn` to judge. */
void fold_each_live(const char *trace, void (*fn)(const char *path, void *ctx), void *ctx);

/* Is this the start of a live file of a version we know? */
bool fold_valid(const void *base, uint64_t bytes);

bool fold_process(struct fold *f); /* CHUNK_PROCESS */
bool fold_clock(
    struct fold *f); /* CHUNK_CLOCK: also early, so that times are known if the live file is lost */
bool fold_rest(struct fold *f);                          /* everything else, END last */
int archive_open_own(const char *path, struct stat *st); /* to read; -1: not there, or not ours */

#endif

/* SPDX-License-Identifier: MIT
 * loaded.h - an opened trace as its own files see it: load.c fills it, events.c and nodes.c walk it.
 * Everything else uses reader.h. */
#ifndef TRACE_LOADED_H
#define TRACE_LOADED_H

#include "core/file.h"
#include "core/map.h"
#include "core/vec.h"
#include "trace/format.h"
#include "trace/reader.h"
#include "trace/wire.h"

/* Bytes of a chunk that passed its checksum; decoded when wanted. */
struct stored {
    const uint8_t *bytes; /* in a mapping, or owned by the trace */
    uint32_t stored_bytes, plain_bytes;
    uint8_t codec;
    uint32_t process; /* index */
};

struct events_head {
    uint64_t thread, seq, shift, depth_before, depth_after, n_events, first, span;
};

struct events_chunk {
    struct stored stored;
    uint64_t seq, depth_after, last_ticks, n_events;
};

struct tree_chunk {
    struct stored stored;
    uint64_t slot, number; /* of its first node */
};

/* What a record could not hold. Told again, as by a live file after its archive, it is not counted again. */
struct told_loss {
    uint64_t lost, abandoned, foreign, damaged;
};

/* Any other chunk, as it came: what a repacked copy starts with. */
struct meta_chunk {
    struct stored stored;
    uint64_t uid;
    uint16_t type;
};

struct loaded_process {
    struct trace_process pub;
    struct process_info info;
    uint64_t uid;
    bool described; /* its PROCESS chunk was seen */
    bool ended;     /* its END was seen */
    VEC(struct clock_pair) pairs;
    int64_t parent; /* index, -1: none */
    struct told_loss told;
    struct told_end told_end;
};

struct loaded_thread {
    struct trace_thread pub;
    uint32_t index, slot;  /* as the process numbers them */
    uint32_t slot_threads; /* threads that used the slot; 0: told by a later one */
    VEC(struct events_chunk) chunks;
    VEC(struct events_chunk) pauses; /* CHUNK_PAUSES: `n_events` is their bytes, the rest but seq is 0 */
    struct told_loss told;
};

struct trace {
    char *path;
    char id[32];
    struct file_view archive;
    VEC(char *) owned;
    VEC(struct loaded_process) processes;
    VEC(struct loaded_thread) threads;
    VEC(struct trace_site) sites;
    VEC(struct tree_chunk) trees;
    VEC(struct meta_chunk) meta;
    uint64_t created_unix_ns;
    struct map_str site_index;   /* kind, line, name, file -> index + 1 */
    struct map_u64 site_numbers; /* process << 32 | its own number -> index + 1 */
    struct map_u64 process_index, thread_index;
    struct map_u64 slot_index; /* process << 32 | slot -> its latest thread + 1 */
    struct trace_loss loss;
    uint64_t begun_raw_ns; /* time 0 */
    bool has_events, has_tree;
    uint64_t torn_bytes; /* half a chunk at the very end of the archive */
    size_t live_files;   /* of processes that did not close the trace */
};

/* A large archive need not stay in memory behind who reads it: what lies before upto is let go of, in large pieces.
 * gone: how far, 0 at first. Whoever reads it again gets it from the file. */
void trace_let_go(const struct trace *t, uint64_t *gone, uint64_t upto);

/* The payload of a chunk, decompressed into *scratch where needed. False: it cannot be decoded. */
struct scratch {
    uint8_t *bytes;
    size_t cap;
    bool refused; /* for want of memory, which is no damage */
};
tare_status scratch_status(const struct scratch *s, tare_error *err); /* why a chunk could not be decoded */
struct events_head events_head(struct dec *d);
bool stored_open(const struct stored *s, struct scratch *scratch, struct dec *out);

/* A process's own site number -> index of the trace. False: unknown. */
bool loaded_site(const struct trace *t, uint32_t process, uint64_t own, uint32_t *out);

/* finish.c: puts what was read in order, and judges whether it is a trace at all. */
tare_status trace_finish(struct trace *t, tare_error *err);

void loss_note(struct trace *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The straight line of the ticks before this one; all 0 at first: none. Most ticks lie on the line of the last. */
struct timeline_hint {
    uint64_t first, length; /* ticks it is good for */
    double since, tick;     /* ns at the first, and of one */
    size_t pair;
};
uint64_t timeline_find(const struct trace *t, const struct loaded_process *p, uint64_t ticks,
                       struct timeline_hint *hint);
/* Ticks of a process -> ns of the trace. */
static inline uint64_t timeline_ns(const struct trace *t, const struct loaded_process *p, uint64_t ticks,
                                   struct timeline_hint *hint)
{
    if (ticks - hint->first >= hint->length) return timeline_find(t, p, ticks, hint);
    return (uint64_t)(hint->since + (double)(int64_t)(ticks - hint->first) * hint->tick);
}
void timeline_prepare(struct trace *t);

#endif

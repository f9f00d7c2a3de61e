/* SPDX-License-Identifier: MIT
 * format.h - the bytes of a trace; docs/trace-format.md tells the same in prose. Two kinds of file:
 *
 *   FILE.tare            the archive: a file header, then chunks, append-only, each with its own checksum
 *   FILE.tare.live-P-U   one per recording process P: a shared mapping the process writes into directly, so
 *                        that nothing is lost to SIGKILL; folded into the archive and removed at a clean end
 *
 * All integers little-endian. Structures here are written as they are; static asserts pin their shape. */
#ifndef TRACE_FORMAT_H
#define TRACE_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "core/clock.h"

enum { TRACE_MAJOR = 1, TRACE_MINOR = 3 };

/* ---- the archive ---- */

#define ARCHIVE_MAGIC "\x89TARE\r\n\x1a"
#define CHUNK_MAGIC UINT32_C(0x4b484354) /* "TCHK" */

/* A reader refuses a file with a feature bit it does not know. */
enum archive_feature { FEATURE_ZSTD = 1 };
#define FEATURES_KNOWN UINT64_C(1)

struct archive_header {
    char magic[8];
    uint16_t major, minor;
    uint32_t header_bytes; /* of this structure: a newer minor may be longer */
    uint64_t features;
    char run_id[32]; /* ULID, NUL-terminated */
    uint64_t created_unix_ns;
};
static_assert(sizeof(struct archive_header) == 64, "trace v1: archive header");

enum chunk_type {
    CHUNK_PROCESS = 1, /* who records; written when a process joins */
    CHUNK_SITES = 2,   /* names and places */
    CHUNK_THREAD = 3,  /* one thread: tid, name, what it dropped */
    CHUNK_EVENTS = 4,  /* packed events of one thread, see pack.h */
    CHUNK_TREE = 5,    /* call-path tree of one thread slot, see tree.h */
    CHUNK_CLOCK = 6,   /* pairs of (ticks, wall) */
    CHUNK_END = 7,     /* the process closed; totals */
    /* since 1.1: what probes saw, see samples.h */
    CHUNK_SERIES = 8,       /* numbers of series: a metric and a label each */
    CHUNK_SAMPLE = 9,       /* one moment: values by series number */
    CHUNK_SAMPLE_MARK = 10, /* an alert, a phase, a note at a moment */
    /* since 1.2 */
    CHUNK_PAUSES = 11, /* which events of a CHUNK_EVENTS are no ends and no begins: the scope waited */
    CHUNK_GPU = 12,    /* what a GPU did, see gpu.h */
    /* since 1.3 */
    CHUNK_MEMORY = 13 /* who allocated and who freed, see memory.h */
};

enum chunk_codec { CODEC_PLAIN = 0, CODEC_ZSTD = 1 };

struct chunk_header {
    uint32_t magic;
    uint16_t type;
    uint8_t codec;
    uint8_t reserved;
    uint32_t stored_bytes; /* that follow */
    uint32_t plain_bytes;  /* after decoding */
    uint64_t process;      /* uid of the process it tells about */
    uint32_t crc;          /* crc32c of this header with crc = 0, then of the stored bytes */
    uint32_t reserved2;
};
static_assert(sizeof(struct chunk_header) == 32, "trace v1: chunk header");

enum { CHUNK_BYTES_MAX = 1 << 20 }; /* stored and plain: bounds what damage can cost a reader */

/* ---- a live file ---- */

#define LIVE_MAGIC "TARELIV1"
#define EXTENT_MAGIC UINT32_C(0x54584554) /* "TEXT" */

enum { LIVE_HEADER_BYTES = 8192, LIVE_ALIGN = 64, LIVE_PAIRS = 64, LIVE_COMMAND_MAX = 2048 };

/* Why a record ends that nobody closed, where the process itself could say so. DISK: it was nearly full, and the
 * process ran on unrecorded; PAGE: so it did, as pages of its live file were missing; KEPT: it ended in order, but
 * could not write it all to the archive, so the live file has the rest. */
enum record_end { RECORD_END_UNTOLD = 0, RECORD_END_DISK = 1, RECORD_END_PAGE = 2, RECORD_END_KEPT = 3 };
struct told_end {
    uint64_t raw_ns; /* when */
    uint64_t why;
};

/* Cost of one scope as found at start-up, in ticks x 256 so that integers suffice. */
struct weight_ticks {
    uint32_t p10, p50, p90, reserved;
};

struct process_info {
    uint64_t uid, parent_uid;
    uint32_t pid, parent_pid;
    uint64_t start_time;                  /* of the process, in clock ticks since boot, as /proc says */
    uint64_t begun_raw_ns, begun_unix_ns; /* when recording began */
    uint32_t mode, clock;                 /* enum tare_mode bits, enum tare_clock */
    uint32_t tsc;                         /* 1: ticks are of the time-stamp counter, 0: nanoseconds */
    uint32_t site_base;                   /* sites below are the parent's */
    struct weight_ticks inside, outside,
        skipped; /* of a scope: in its own reading, beyond it, when left out */
};
static_assert(sizeof(struct process_info) == 112, "trace v1: process info");

struct live_header {
    char magic[8];
    uint16_t major, minor;
    uint32_t header_bytes;
    char run_id[32];
    struct process_info process;
    uint64_t used;        /* bytes in use, header included: extents follow one another up to here */
    uint64_t lost_scopes; /* not recorded for want of memory, or met while a slow path was busy */
    uint64_t lost_events; /* dropped: disk limit or write error */
    uint32_t threads;     /* next thread index */
    uint32_t n_pairs;     /* clock pairs held; when full every second one is forgotten */
    struct clock_pair pairs[LIVE_PAIRS];
    char command[LIVE_COMMAND_MAX];
    struct told_end end; /* since 1.3; zeros: not told */
};
enum { LIVE_HEADER_OLD_BYTES = offsetof(struct live_header, end) };
static_assert(sizeof(struct live_header) <= LIVE_HEADER_BYTES, "live header fits its room");
static_assert(sizeof(struct clock_pair) == 32, "trace v1: clock pair");

enum extent_type { EXTENT_SITES = 1, EXTENT_TREE = 2, EXTENT_EVENTS = 3, EXTENT_MEMORY = 4 };

struct extent {
    uint32_t magic;
    uint16_t type, reserved;
    uint64_t bytes;  /* this header included; a multiple of LIVE_ALIGN */
    uint32_t thread; /* index of the thread (EVENTS) or slot (TREE, MEMORY) */
    uint32_t reserved2;
    uint64_t seq; /* EVENTS: order among the thread's extents; 0: not in use */
    uint64_t spare[4];
};
static_assert(sizeof(struct extent) == 64, "trace v1: extent header");

/* One site in an EXTENT_SITES; entries follow one another, 8-byte aligned. */
struct site_entry {
    uint32_t bytes; /* of the whole entry; written last: 0 ends the list */
    uint32_t index;
    uint32_t line;
    uint16_t kind, name_bytes, file_bytes;
    char text[]; /* name, then file */
};
enum { SITE_NAME_MAX = 1024, SITE_FILE_MAX = 1024 };

/* ---- raw events, 16 bytes; counts and marks take further slots ---- */

/* RAW_RESUME says of the BEGIN in the next slot which pause it ends; an END that is a pause has its number. Both
 * have it in place of a site. */
enum raw_kind { RAW_BEGIN = 1, RAW_END = 2, RAW_COUNT = 3, RAW_MARK = 4, RAW_RESUME = 5 };
/* WAITED: of a RAW_RESUME that the wait is part of the call; of a pause that it was noticed late. */
enum { RAW_FLAG_WEIGHED = 1, RAW_FLAG_ABANDONED = 2, RAW_FLAG_PAUSED = 4, RAW_FLAG_WAITED = 8 };

struct raw_event {
    uint64_t ticks; /* written last: 0 means not (yet) there */
    uint64_t what;  /* kind | flags << 8 | extra slots << 16 | mark bytes << 24 | site << 32 */
};
static_assert(sizeof(struct raw_event) == 16, "trace v1: a raw event is 16 bytes");

/* In the first of the slots at the end of a chunk that were too few for an event: no kind, so no reader takes it
 * for one. */
#define RAW_UNUSED ((uint64_t)1 << 32)

static inline uint64_t raw_what(unsigned kind, unsigned flags, unsigned extra, unsigned bytes, uint32_t site)
{
    return kind | (uint64_t)flags << 8 | (uint64_t)extra << 16 | (uint64_t)bytes << 24 | (uint64_t)site << 32;
}

/* ---- the call-path tree: nodes and their histograms, linked by offsets in units of 64 bytes ---- */

enum { OCTAVES = 48, SUBS = 16, BATCHES_MAX = 32, WEIGH_PAIRS = 512 };

struct node {
    uint64_t count, total; /* calls and ticks, without the weighed ones */
    uint64_t min, max;     /* ticks; min is UINT64_MAX before the first call. Counters: of int64 values */
    uint64_t batch_next;   /* slow path when count gets here */
    uint32_t flags, site;
    uint32_t parent, child, next, kind;
    uint64_t off_count, off_total, off_scopes; /* weighed calls: calls, ticks, descendants left out */
    uint64_t abandoned;
    uint32_t pairs; /* struct weigh_pairs */
    uint32_t n_batches;
    uint64_t batch_size, batch_start;
    uint64_t spare;
    uint32_t octave[OCTAVES]; /* -> uint64_t[SUBS] */
    uint64_t batch[BATCHES_MAX];
};
static_assert(sizeof(struct node) == 576, "trace v1: node");

/* A weighed call and the next call of the same path with its scopes on. */
struct weigh_pair {
    uint32_t off, on, scopes;
};

struct weigh_pairs {
    uint32_t seen, reserved;
    struct weigh_pair pair[WEIGH_PAIRS];
};

/* First thing in the first tree extent of a slot. */
struct slot_header {
    uint32_t root;               /* node */
    uint32_t threads;            /* that have used this slot */
    uint32_t tid;                /* the latest */
    uint32_t thread;             /* its index */
    uint64_t lost;               /* scopes and events it could not record */
    uint64_t abandoned, foreign; /* left by longjmp; ended in another thread or process */
    char name[16];
    uint32_t given; /* since 1.2: where THREAD_NAME_MAX bytes are, the name the program gave; 0: none */
    uint32_t spare;
};
enum { THREAD_NAME_MAX = 64 };
static_assert(sizeof(struct slot_header) == 64, "trace v1: slot header");

static inline unsigned bucket_octave(uint64_t v)
{
    unsigned msb = 63u - (unsigned)__builtin_clzll(v | 15);
    unsigned octave = msb - 3;
    return octave < OCTAVES ? octave : OCTAVES - 1;
}

/* Values below 16 have a bucket each; above, 16 linear buckets to the octave. */
static inline unsigned bucket_sub(uint64_t v, unsigned octave)
{
    return octave ? (unsigned)(v >> (octave - 1)) & 15 : (unsigned)v & 15;
}

static inline uint64_t bucket_low(unsigned octave, unsigned sub)
{
    return octave ? (uint64_t)(16 + sub) << (octave - 1) : sub;
}

#endif

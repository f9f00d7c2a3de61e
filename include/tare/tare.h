/* SPDX-License-Identifier: MIT
 * tare.h - weigh your own program: scopes, counters and marks.
 *
 * Read this file top-down: the three macros are all most programs need; sessions, dynamic names
 * and hand-ended scopes follow. Record with
 *
 *     cc app.c -ltare && TARE_TRACE=app.tare ./app && tare report app.tare
 *
 * or start a session from the program with tare_start(). Without a session each macro costs one load
 * and one branch. Everything here may be called from any thread and from signal handlers, except
 * tare_start, tare_stop, tare_site_new and tare_thread_name. Nothing here ever ends your program, prints
 * from it or waits for another thread; what could not be recorded is counted in the trace and shown by
 * `tare report`.
 */
#ifndef TARE_TARE_H
#define TARE_TARE_H

#include <stddef.h>
#include <stdint.h>

#define TARE_VERSION_MAJOR 0
#define TARE_VERSION_MINOR 1
#define TARE_VERSION_PATCH 0
#define TARE_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

#define TARE_API __attribute__((visibility("default")))

/* ---- 1. The three macros ------------------------------------------------------------------- */

/* Time from here to the end of the enclosing block. The name must be a string literal. */
#define TARE_SCOPE(literal) TARE_SCOPE_AT_(literal, __LINE__)

/* Add n (an integer, may be negative) to a counter of the running scope. */
#define tare_count(literal, n)                                                                     \
    do {                                                                                           \
        static tare_site site_ = TARE_SITE_(literal, TARE_SITE_COUNTER);                           \
        if (TARE_ON_) tare_site_count(&site_, (n));                                                \
    } while (0)

/* An instant with a printf-style text of at most TARE_MARK_MAX bytes: tare_mark("epoch", "%d", epoch). */
#define tare_mark(literal, ...)                                                                    \
    do {                                                                                           \
        static tare_site site_ = TARE_SITE_(literal, TARE_SITE_MARK);                              \
        if (TARE_ON_) tare_site_mark(&site_, __VA_ARGS__);                                         \
    } while (0)

#define TARE_MARK_MAX 120

/* ---- 2. Sessions: start and stop recording from the program --------------------------------- */

#define TARE_STATUS_MAP(X)                                                                         \
    X(OK, 0, "success")                                                                            \
    X(NOMEM, -1, "out of memory")                                                                  \
    X(INVALID, -2, "invalid argument or input")                                                    \
    X(FORMAT, -3, "damaged file, or of a newer version")                                           \
    X(IO, -4, "the system refused to read or write")                                               \
    X(DENIED, -5, "measurement refused by the system")                                             \
    X(UNSUPPORTED, -6, "not supported here")                                                       \
    X(BUSY, -7, "already in progress")

typedef enum tare_status {
#define X(name, value, text) TARE_##name = value,
    TARE_STATUS_MAP(X)
#undef X
} tare_status;

/* What went wrong, in words fit for a person. Functions that take one accept NULL. */
typedef struct tare_error {
    tare_status status;
    char text[508];
} tare_error;

#define TARE_ERROR_INIT {TARE_OK, {0}}

/* The fixed text of a status: "out of memory". Never NULL. */
TARE_API const char *tare_status_text(tare_status status);
TARE_API const char *tare_version(void);

enum tare_mode {
    TARE_AGGREGATE = 1, /* call-path tree with histograms, bounded memory */
    TARE_EVENTS = 2     /* every begin and end on a timeline */
};

enum tare_clock {
    TARE_CLOCK_ORDERED = 0, /* the end waits for the work: right for short, latency-bound bodies */
    TARE_CLOCK_FAST = 1     /* cheaper by several ns; may miss work still in flight at the end */
};

typedef struct tare_options {
    size_t size;           /* sizeof(tare_options): lets old programs meet newer libraries */
    const char *path;      /* the trace; an earlier finished one is kept as PATH.old; %p is the process id */
    uint32_t mode;         /* TARE_AGGREGATE | TARE_EVENTS */
    uint32_t clock;        /* enum tare_clock */
    uint64_t disk_bytes;   /* event log of this process at most this large, then drop and count */
    uint64_t memory_bytes; /* mapped memory at most this large, then drop and count */
    uint32_t weigh_one_in; /* skip a parent's scopes once in so many calls to weigh them; 0: never */
    uint32_t reserved;
} tare_options;

#define TARE_OPTIONS_INIT                                                                          \
    {                                                                                              \
        sizeof(tare_options), NULL, TARE_AGGREGATE | TARE_EVENTS, TARE_CLOCK_ORDERED,              \
            (uint64_t)1 << 30, (uint64_t)512 << 20, 64, 0                                          \
    }

/* Start recording this process, and the children it forks, into opts->path. One session at a time.
 * TARE_TRACE in the environment does the same before main(). Since 0.1. */
TARE_API tare_status tare_start(const tare_options *opts, tare_error *err);

/* Stop, pack and close the trace. Also happens at normal exit. TARE_OK without a session. Since 0.1. */
TARE_API tare_status tare_stop(tare_error *err);

/* ---- 3. Sites and hand-ended scopes: for bindings and dynamic names -------------------------- */

enum tare_site_kind { TARE_SITE_SCOPE = 0, TARE_SITE_COUNTER = 1, TARE_SITE_MARK = 2 };

/* A place in the program. Static ones come from the macros; leave `id` alone. */
typedef struct tare_site {
    const char *name;
    const char *file;
    uint32_t line;
    uint32_t kind;
    uint64_t id;
} tare_site;

/* A site for a name known only at run time. Copies its strings; the same (kind, name, file, line) gives
 * the same site for the life of the process. NULL when memory or the table of names is full. */
TARE_API tare_site *tare_site_new(enum tare_site_kind kind, const char *name, const char *file,
                                  uint32_t line);

/* One running scope, on the caller's stack. Opaque but for its size. */
typedef struct tare_scope {
    uint64_t private_[5];
} tare_scope;

TARE_API void tare_begin(tare_scope *scope, tare_site *site);
TARE_API void tare_end(tare_scope *scope);

/* A free scope: one that is not bound to a block of C, for coroutines and other languages. It ends by
 * tare_end, on the thread it began on. Before the thread goes on with another coroutine, tare_pause takes
 * the latest open scope off it; tare_resume puts it back, under whatever is open then; the time it waited
 * is part of it (wait_counts, as for a task) or not (as for a generator). However often it waits, the call
 * is one call. Since 0.1. */
TARE_API void tare_open(tare_scope *scope, tare_site *site);
TARE_API void tare_pause(tare_scope *scope);
TARE_API void tare_resume(tare_scope *scope, int wait_counts);

/* The name of a thread in traces, up to 63 bytes of it, in place of the system's, which has 15. tid 0: this
 * thread, now and in later sessions; else one that has recorded in this session. NULL: the system's again.
 * Since 0.1. */
TARE_API void tare_thread_name(uint32_t tid, const char *name);

TARE_API void tare_site_count(tare_site *site, int64_t n);
TARE_API void tare_site_mark(tare_site *site, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Below: what the macros are made of ------------------------------------------------------ */

/* Not zero while a session records. Written by the library only. */
extern TARE_API uint32_t tare_recording;

#define TARE_ON_ __builtin_expect(__atomic_load_n(&tare_recording, __ATOMIC_RELAXED), 0)
#define TARE_SITE_(literal, kind)                                                                  \
    {                                                                                              \
        "" literal, __FILE__, __LINE__, kind, 0                                                    \
    }
#define TARE_CAT2_(a, b) a##b
#define TARE_CAT_(a, b) TARE_CAT2_(a, b)
#define TARE_SCOPE_AT_(literal, line)                                                              \
    static tare_site TARE_CAT_(tare_site_, line) = TARE_SITE_(literal, TARE_SITE_SCOPE);           \
    __attribute__((cleanup(tare_leave_))) tare_scope TARE_CAT_(tare_scope_, line);                 \
    tare_enter_(&TARE_CAT_(tare_scope_, line), &TARE_CAT_(tare_site_, line))

#include <tare/inline.h>

#ifdef __cplusplus
}
#endif

#endif

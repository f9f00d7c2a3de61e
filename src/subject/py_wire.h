/* SPDX-License-Identifier: MIT
 * py_wire.h - what `tare bench py:..` and the Python process that does the work say to each other: one request and one
 * reply at a time on each lane, native numbers, since both are on one machine. `tare tune py:..` only listens. The same
 * stands in python/tare/_worker.py and _tune_worker.py. Replies may be anything: they are checked before they are
 * believed. */
#ifndef SUBJECT_PY_WIRE_H
#define SUBJECT_PY_WIRE_H

#include "probe/procstat.h"
#include "subject/peer.h"
#include "subject/subject.h"

enum { PY_PROTOCOL = 1, PY_PACKET_MAX = 1 << 16, PY_TIMES_MAX = 4096 };

/* The words of a state; of a pair the first says whether the second is known. */
enum py_state_word {
    PY_STATE_USER_NS,
    PY_STATE_SYSTEM_NS,
    PY_STATE_MINOR_FAULTS,
    PY_STATE_MAJOR_FAULTS,
    PY_STATE_VOLUNTARY,
    PY_STATE_INVOLUNTARY,
    PY_STATE_MIGRATIONS,
    PY_STATE_READ_BYTES = PY_STATE_MIGRATIONS + 2,
    PY_STATE_WRITE_BYTES = PY_STATE_READ_BYTES + 2,
    PY_STATE_RSS = PY_STATE_WRITE_BYTES + 2,
    PY_STATE_RSS_PEAK = PY_STATE_RSS + 2,
    PY_STATE_PEAK_RESET = PY_STATE_RSS_PEAK + 2,
    PY_STATE_WORDS
};

enum py_ask_kind {
    PY_ASK_PREPARE = 1, /* a: batch, b: length; reply: value = units */
    PY_ASK_RUN, /* a: ns at most (0: one call), b: runs at most; reply: times, value = calls each (failed: ns) */
    PY_ASK_STATE,    /* a: reset the peak; reply: words */
    PY_ASK_OVERHEAD, /* reply: value = ns of each call */
    PY_ASK_DROP      /* the case is done */
};

struct py_request {
    uint32_t kind, id;
    int64_t a, b;
};

struct py_reply {
    int32_t status;           /* tare_status; negative: a text says why */
    uint32_t n;               /* times or words after it; of a text its bytes */
    uint64_t value, switches; /* switches: against its will, during these runs */
};

/* What the packet's bytes are; times and words are in `numbers`, which has room for PY_TIMES_MAX. TARE_FORMAT when
 * they are no reply; the reply's own status, with its text, when that is negative. */
tare_status py_reply_read(const void *bytes, size_t n, struct py_reply *out, uint64_t *numbers,
                          tare_error *err);

/* The text of a first reply: name, path and version, a NUL after each, in `out` (copied, cut to their size). */
struct py_hello {
    char name[128], path[1024], version[32];
};
tare_status py_hello_read(const void *bytes, size_t n, struct py_hello *out, tare_error *err);

/* A packet of a process that tunes. Status above 0: the text says how far it is; 0: it is the next piece of an answer
 * of `value` bytes. The text is out->n bytes, borrowed. */
tare_status py_piece_read(const void *bytes, size_t n, struct py_reply *out, const char **text,
                          tare_error *err);

/* ---- the process: `python` with these words, and its first packet ---- */

tare_status py_start(struct peer *p, const char *python, const char *const *argv, unsigned lanes,
                     tare_error *err);
tare_status py_greeting(struct peer *p, const char *python, const volatile sig_atomic_t *interrupted,
                        struct py_hello *out, tare_error *err);

/* Of PY_STATE_WORDS numbers. */
void py_state_read(const uint64_t *words, struct process_state *out);

#endif

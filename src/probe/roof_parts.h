/* SPDX-License-Identifier: MIT
 * roof_parts.h - what roof.h is made of: the inner loops, one row per instruction set; threads that run one at the same
 * time; how much memory to move; a file that keeps the result. Private to src/probe. */
#ifndef PROBE_ROOF_PARTS_H
#define PROBE_ROOF_PARTS_H

#include "core/buf.h"
#include "probe/roof.h"

/* ---- roof_kernel_*.c: written in assembly, because the measure is the processor: compiler, optimisation level and
 * sanitizers must not change it ---- */

/* To be raised when a kernel changes: older cached values are then measured anew. */
enum { ROOF_KERNELS_VERSION = 1 };

enum roof_kind { ROOF_FLOAT, ROOF_INT };

struct roof_kernel {
    const char *name;
    enum roof_kind kind;
    bool (*usable)(void);         /* by this processor under this system; NULL: by all */
    void (*run)(uint64_t rounds); /* in registers alone */
    double ops;                   /* per round: a multiply and an add are two */
};

static inline bool roof_kernel_usable(const struct roof_kernel *k)
{
    return !k->usable || k->usable();
}

/* Each ends with name NULL. The plain ones are C, and only used for a kind that no native one is usable for. */
extern const struct roof_kernel roof_kernels_native[], roof_kernels_plain[];

enum { ROOF_BLOCK = 256 }; /* memory kernels take multiples of this many bytes, aligned to 64 */

void roof_read(const void *from, size_t bytes);
/* to = a + s * b, each so many bytes; where there are such stores they go past the caches, so that the line written
 * is not read first. */
void roof_triad(void *to, const void *a, const void *b, size_t bytes);

/* ---- roof_team.c: threads that do a piece of work at the same time, again and again, and how long the quickest time
 * took from the first start to the last end. Turns on processors of their own alternate with turns wherever the system
 * puts them: on a busy machine only the first get all threads running at once, and where some processors are halves of
 * one core only the system knows which to take. The best turn counts ---- */

struct roof_team;

/* Work of member `index` (from 0); called by all members at once. */
typedef void roof_work_fn(void *ctx, unsigned index);

tare_status roof_team_new(struct roof_team **out, unsigned threads, tare_error *err);
void roof_team_free(struct roof_team *t); /* NULL is fine */

struct roof_turn {
    uint64_t ns;     /* from the first start to the last end */
    uint64_t cpu_ns; /* the longest that one needed of a processor: much less than ns when others got it */
};

/* Once. `pinned`: each on a processor of its own, as far as there are enough. */
struct roof_turn roof_team_do(struct roof_team *t, roof_work_fn *work, void *ctx, bool pinned);
/* Again and again, at least four times and until `budget_ns` is spent: the quickest. While even that was disturbed by
 * others it goes on, up to three times the budget. */
struct roof_turn roof_team_best(struct roof_team *t, roof_work_fn *work, void *ctx, uint64_t budget_ns);
bool roof_turn_is_quiet(struct roof_turn best); /* all had a processor all the time, but for 10 % */

/* ---- roof.c: how large a piece of memory must be to tell memory from caches, and may be without harm ---- */

/* Bytes of all last-level caches together; `root` as in procfs.h. Unknown: the system does not tell. */
struct known_u64 roof_cache_bytes(const char *root);

/* Four times the caches (32 MiB where unknown), at least 64 MiB, at most 1 GiB and an eighth of the memory that is
 * available. 0: that is less than twice the caches, and would say nothing about memory. */
size_t roof_working_set(struct known_u64 cache, struct known_u64 available);

/* ---- roof_cache.c: a roof kept in a file, because measuring it takes a second. A file that is damaged, too old, or of
 * another host, number of threads or version of the kernels is no value, and never an error ---- */

enum { ROOF_DAYS_MAX = 30 };

/* The text of the file, and back. `now` is in seconds of the wall clock. */
void roof_cache_write(const struct roof *r, const char *fingerprint, int64_t now, struct buf *out);
bool roof_cache_read(struct roof *out, const struct roof_options *o, int64_t now, const char *text, size_t n);

void roof_cache_save(const struct roof *r, const struct roof_options *o);

#endif

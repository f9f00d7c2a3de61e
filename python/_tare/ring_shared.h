/* SPDX-License-Identifier: MIT
 * ring_shared.h - slots of memory that a process and the workers it forks share, allocated once and used again and
 * again: a job is posted with a slot, a worker makes its batch right there, and the process reads it in place. One
 * mapping of an anonymous file (memfd), inherited by fork: nothing has a name, so nothing can be left behind. Every
 * wait is a futex with a deadline; that a worker died is seen by its pidfd. Knows nothing of Python. */
#ifndef PYTHON_RING_SHARED_H
#define PYTHON_RING_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/error.h"

enum { SHARED_SLOTS_MAX = 1024, SHARED_WORKERS_MAX = 256 };

enum shared_kind { SHARED_DATA, SHARED_ERROR }; /* what a worker says is in its slot */
enum shared_wait { SHARED_READY, SHARED_LATE, SHARED_CLOSED, SHARED_DEAD, SHARED_SIGNAL };

struct shared_slot { /* at the head of each slot, in shared memory */
    uint32_t word;   /* futex: generation * 4 + a state of ring_shared.c */
    uint32_t owner;  /* pid of the worker that makes it */
    uint32_t at;     /* position of the sample that is being made */
    uint32_t kind;   /* enum shared_kind */
    uint32_t meta;   /* bytes of the description, which stands in front of the data */
};

struct shared_ring {
    unsigned char *map; /* NULL: not open */
    size_t size, slots, slot_bytes, stride;
    int watched[SHARED_WORKERS_MAX]; /* pidfds */
    pid_t pids[SHARED_WORKERS_MAX];
    size_t workers;
};

/* Slots are rounded up to a power of two. Pages take memory only once they are used. */
tare_status shared_open(struct shared_ring *r, size_t slots, size_t slot_bytes, tare_error *err);
void shared_close(struct shared_ring *r); /* tells all workers that it is over, and unmaps; zeroed is fine */

struct shared_slot *shared_slot_of(const struct shared_ring *r, size_t slot);
unsigned char *shared_data(const struct shared_ring *r, size_t slot); /* slot_bytes of them */

/* The process: hands a slot out as the next job, whose number it gets. What the worker needs to know is in the slot's
 * first `meta` bytes. */
uint32_t shared_post(struct shared_ring *r, size_t slot, uint32_t meta);
/* Until the job in this slot is made, or a watched worker has died (*dead), or the time is over. */
enum shared_wait shared_wait_done(struct shared_ring *r, size_t slot, uint32_t job, double seconds,
                                  pid_t *dead);
tare_status shared_watch(struct shared_ring *r, pid_t pid, tare_error *err);
/* Kills the watched workers and waits until they have ended, `seconds` at most. In another process than the one that
 * posts it only lets go of them. False: one still lives. */
bool shared_end(struct shared_ring *r, double seconds);

/* A worker: until job number `job` is posted; *slot is its own then. SHARED_DEAD: the process that posts is gone.
 * SHARED_CLOSED also where the shared memory says what cannot be. */
enum shared_wait shared_take(struct shared_ring *r, uint32_t job, double seconds, size_t *slot);
/* TARE_BUSY: the slot is not this job's any more; then nothing is written. */
struct shared_made {
    uint32_t job;
    enum shared_kind kind;
    const void *meta; /* description, put in front of the data */
    size_t bytes;     /* of it, at most slot_bytes */
};
tare_status shared_done(struct shared_ring *r, size_t slot, const struct shared_made *made, tare_error *err);

#endif

/* SPDX-License-Identifier: MIT
 * agent.h - libtare-agent.so, which `tare run --memory` puts in front of a program: who allocated, who freed.
 *
 *   hooks.c    malloc and its family, mmap: the fast path       slots.c   records -> live file -> archive
 *   sample.c   which allocations are noted; the noted ones      stacks.c  frames told once, then by number
 *   modules.c  libraries in memory, by /proc/self/maps          unwind.c  native frames, from .eh_frame
 *   python.c   frames of Python, its allocator                  start.c   settings, joining, forks, the end
 *   scopes.c   scopes of tare around an allocation          hot.h     what each allocation goes through
 *   attach.c   the same in a program that runs already: begun and ended by the Python package
 *
 * It lives in other people's programs: no exit, no print, no thread, no lock that is waited for, no allocation of the
 * program's memory, no signal handler but the guard of trace/pages.h. What cannot be done becomes a NOTE or a counter
 * in the trace. All that a process knows is in one block that a fork wipes: a child reads zeros, and joins the trace by
 * itself when it has something to tell. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/rng.h"
#include "trace/format.h"
#include "trace/live.h"
#include "agent/frames.h"
#include "trace/memory.h"

enum {
    SLOTS = 16,
    SLOT_BYTES = 64 << 10,
    SET_BUCKETS = 1 << 16, /* of what is sampled and not yet freed */
    SET_WAYS = 4,
    FILTER_PLACES = 1 << 16,
    KNOWN = 1 << 19, /* places for frames with all around them, code, names */
    KNOWN_MOST = KNOWN / 4 * 3,
    MODULES = 2048,
    ROWS = 1 << 13 /* how to unwind from an address */
};

/* ---- what is known ---- */

struct slot {
    uint32_t lock; /* 1: somebody writes */
    uint32_t by;   /* thread of the last record */
    uint64_t seq;
    struct memory_state state;
    struct enc enc;
    struct extent *extent;
    uintptr_t page; /* that slots_stalled() was asked of last */
    struct last_stack last;
};

/* A number by what it stands for, as a hash of 64 bits: two that are equal by chance would be taken for one, which of
 * 200,000 happens once in 900 million runs. */
struct known {
    uint64_t key;    /* 0: free */
    uint32_t number; /* 0: on its way */
    uint32_t spare;
};

struct module {
    uint64_t start, end;  /* of its code; end 0: gone */
    uint64_t bias, table; /* added to addresses of the file; its .eh_frame_hdr, 0: none */
    uint64_t table_bytes;
};

struct row {
    uint64_t key, value; /* key: address ^ value ^ generation, so that half of one is none */
};

enum agent_state { AGENT_NONE, AGENT_JOINING, AGENT_ON, AGENT_OFF };

struct agent {
    uint32_t state; /* enum agent_state; NONE also in a forked child */
    uint32_t threads, numbers, n_modules, modules_lock, pairs_lock;
    uint32_t generation; /* of modules */
    uint32_t n_known, codes, names;
    uint32_t full; /* the archive takes no more, or the live file is gone: what is there is kept */
    uint32_t pid;
    bool waits; /* a store into the live file may wait for room */
    uint64_t uid;
    uint64_t lost_records, lost_stacks, lost_samples, told_lost;
    uint64_t next_pair, next_heap; /* ticks */
    uint64_t looked_ns;            /* at the maps */
    struct own_file archive;
    char *live; /* the mapping */
    size_t live_bytes;
    char live_path[4096 + 40];
    struct slot slots[SLOTS];
    struct module modules[MODULES];
    struct row rows[ROWS];
    uint8_t filter[FILTER_PLACES];
    uint64_t set[SET_BUCKETS][SET_WAYS];
    struct known known[KNOWN];
};
extern struct agent *agent; /* NULL: not set up */

/* How many sampled blocks are in each part of memory; all 255 when every free is told. In the block, or zeros. */
extern uint8_t *set_filter;
extern uint8_t no_filter[FILTER_PLACES];

struct settings { /* as they were when the program started */
    char trace[4096];
    uint64_t every; /* 0: each allocation */
    uint32_t frames;
    bool on, libc_malloc, native;
    bool other_malloc; /* what we call is not libc's: a library's own, in front of it */
    uint32_t
        attached;     /* the process that began it while it ran; 0: in front of the program since its start */
    uint32_t session; /* counts what attach.c began: what threads have left is of one of them */
    uint32_t in_flight; /* threads that are in here, where it is attached */
    struct clock_source clock;
};
extern struct settings settings;

/* ---- of a thread ---- */
struct self {
    int64_t left;     /* bytes until the next sample; the hot path knows only this */
    const char *busy; /* in here, since this frame of the stack: what we do ourselves is not recorded */
    uint32_t within;  /* in Python's allocator, which was told of already */
    uint32_t inside;  /* in malloc itself, which a signal handler must not ask anything then */
    uint32_t number;
    uint32_t on_main;      /* 1: the main thread, 2: another */
    uint32_t session;      /* settings.session that `left` is of */
    bool counted, guarded; /* in settings.in_flight; by pages_guard_thread() */
    uint64_t uid;          /* of the process it is registered in */
    uint64_t drawn;        /* of the process it drew its first sample in: a free may come before that */
    struct rng rng;
};
extern __thread struct self self __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* ---- start.c ---- */
bool agent_ready(void); /* this process records; a forked child joins here */
bool agent_join(void);
void agent_end(void);

/* ---- slots.c ---- */
bool slots_open(const struct process_info *p, const char run_id[32]);
struct slot *slot_take_another(void); /* NULL: all are in use; counted */
void slot_block_apart(struct slot *s, enum memory_kind kind,
                      const uint64_t *v);                     /* slot_put() of ALLOC, FREE */
bool slot_put(struct slot *s, const struct memory_record *r); /* false: lost, and counted */
void slot_text(struct slot *s, struct memory_record r, const char *text);
void slots_close(void);
bool archive_put(enum chunk_type type, uint64_t process, const void *payload, size_t bytes);
bool slots_time_due(struct slot *s, uint64_t ticks);   /* a clock pair; false: recording has ended */
void slots_stalled_at(struct slot *s, uint64_t ticks); /* did the disk hold up a record of then? */

/* ---- sample.c ---- */
bool sample_due(struct self *me, uint64_t size);
bool sample_keep(uint64_t address);   /* until it is freed */
bool sample_forget(uint64_t address); /* true: it was kept */
double sample_gap(struct rng *r, double mean);

/* ---- stacks.c ---- */
uint64_t stack_number(struct slot *s, struct stack *stack); /* with Python's and scopes; tells what is new */
uint32_t known_number(uint64_t key,
                      bool *fresh); /* 0: no room, or on its way; fresh: known_tell() must follow */
void known_tell(uint64_t key, uint32_t number);

/* ---- scopes.c ---- */
/* Brings `last` to the scopes that are open now: the first of its frames that is another, UINT32_MAX: none. */
uint32_t scopes_frames(struct slot *s, struct last_stack *last);
void scopes_find(void); /* of a library that is here already; asks the loader */
struct open_scopes;
extern const struct open_scopes *scopes_told __attribute__((visibility("hidden"))); /* NULL: there are none */

/* ---- modules.c, unwind.c ---- */
void modules_look(bool gone);    /* at the maps; gone: something was unloaded */
int module_at(uint64_t address); /* index; MODULE_NONE; MODULE_LATER: not looked since it may have come */
enum { MODULE_NONE = -1, MODULE_LATER = -2 };
struct cursor {
    uint64_t ip, sp, bp, top;
};
bool unwind_step(struct cursor *c); /* false: the end, or no way on */

/* ---- python.c ---- */
void python_find(void);                    /* at the start */
const void *python_innermost(bool object); /* the innermost frame of this thread; NULL: there is none */
/* Brings `last` to the frames from `innermost` on: the first of its frames that is another now, UINT32_MAX: none. At
 * most so many; what does not fit is missing, and last->whole says so. */
uint32_t python_frames(struct last_stack *last, const void *innermost, uint32_t most);
uint64_t name_number(struct slot *s, const char *text);
extern struct interpreter {
    uint64_t start, end; /* its code; 0: not looked for yet */
    bool known, hooked;  /* its frames can be read; we take part in its allocator */
} interpreter __attribute__((visibility("hidden")));
void python_find_code(void);
static inline bool python_is_interpreter(uint64_t address) /* code of the interpreter itself */
{
    if (__builtin_expect(!interpreter.end && interpreter.known, 0)) python_find_code();
    return address >= interpreter.start && address < interpreter.end;
}
uint32_t python_code(struct slot *s, const struct frame *f); /* its number */
void python_hook(void);   /* take part in Python's allocator, once, if that is safe now */
void python_unhook(void); /* with the GIL: no more, unless somebody else took part after us */
void python_tell(struct slot *s);

/* ---- hooks.c, for attach.c: what stands for a function of libc ---- */
struct hook {
    const char *name;
    void *hook, **real;
};
const struct hook *hook_named(const char *name); /* NULL: none */
bool hooks_resolve(void);

/* ---- attach.c ---- */
extern uint32_t attach_looks __attribute__((visibility("hidden"))); /* not 0: a library may have come */
void attach_look(void);                                             /* with the GIL */

/* What a thread has left of a former session counts no more. */
static inline void self_renew(struct self *me)
{
    if (__builtin_expect(me->session != settings.session, 0)) {
        me->session = settings.session;
        me->left = 0;
    }
}

/* ---- hooks.c, for python.c ---- */
void note_alloc(void *p, size_t size, void *const *fp);
void note_object(void *p, size_t size, void *const *fp); /* of Python's allocator, with the GIL */
void note_free(void *p);

#endif

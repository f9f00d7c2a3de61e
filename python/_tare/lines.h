/* SPDX-License-Identifier: MIT
 * lines.h - what the line profiler records: for each line of the chosen functions how often it began and
 * how long it ran, what it called included. Rows are shared by all threads (the GIL is held); what is open
 * belongs to a thread. The functions that run at every event stand here; they allocate only when a stack
 * grows. */
#ifndef PYTHON_LINES_H
#define PYTHON_LINES_H

#include "calls.h" /* its clock */

struct line_row {
    uint64_t hits, ticks;
    uint64_t inner_lines, inner_calls; /* events of ours within those ticks, beside its own */
};

struct line_code {
    PyObject *code; /* kept alive: its address is its name */
    int first;      /* number of rows[0] in the source */
    size_t n, at;   /* rows, and their place among all rows of the recorder */
    struct line_row *rows;
};

struct line_frame {
    struct line_code *code;
    struct line_row *row; /* that runs; NULL: none yet */
    uint64_t start, lines, calls;
};

/* One thread. */
struct line_ctx {
    struct line_frame *frames;
    size_t n, cap;
    uint64_t lines, calls; /* events so far */
    VEC(uint32_t) open;    /* by row: how often it is open in this thread; time counts for the outermost */
    struct line_ctx *next;
};

struct line_recorder {
    PyObject_HEAD VEC(struct line_code *) codes;
    struct map_u64 code_of; /* address -> index + 1 */
    size_t n_rows;
    struct line_ctx *threads;
    bool on;
    char trouble[200];
};

extern struct line_recorder *lines_active;

/* How events come: start returns -1 with an exception set. */
struct line_engine {
    int (*start)(struct line_recorder *rec);
    int (*add)(struct line_recorder *rec, PyObject *code); /* one more function while it records */
    void (*stop)(struct line_recorder *rec);
};
extern const struct line_engine lines_engine;

struct line_ctx *lines_mine_slow(void);
extern uint64_t lines_generation;
struct lines_mine {
    uint64_t generation;
    struct line_ctx *ctx;
};
extern __thread struct lines_mine lines_mine __attribute__((tls_model("initial-exec")));

/* The calling thread's, or NULL: nothing records, or no memory. */
static inline struct line_ctx *lines_ctx(void)
{
    return CALLS_LIKELY(lines_mine.generation == lines_generation) ? lines_mine.ctx : lines_mine_slow();
}

static inline struct line_code *lines_code(PyObject *code)
{
    const uint64_t *at = map_u64_find(&lines_active->code_of, (uint64_t)(uintptr_t)code);
    return at && *at ? lines_active->codes.items[*at - 1] : NULL;
}

/* ---- what events do ---- */

struct line_frame *lines_push(struct line_ctx *c, struct line_code *code);
void lines_leave(struct line_ctx *c, PyObject *code, uint64_t now);
/* A call begins (0), or goes on at that line. */
void lines_enter(struct line_ctx *c, struct line_code *known, int resumed_at);

static inline uint32_t *lines_open(struct line_ctx *c, const struct line_frame *f)
{
    return &c->open.items[f->code->at + (size_t)(f->row - f->code->rows)];
}

static inline void lines_close_row(struct line_ctx *c, struct line_frame *f, uint64_t now)
{
    if (!f->row || --*lines_open(c, f)) return;
    f->row->ticks += now - f->start;
    f->row->inner_lines += c->lines - f->lines;
    f->row->inner_calls += c->calls - f->calls;
}

static inline void lines_open_row(struct line_ctx *c, struct line_frame *f, int line, uint64_t now)
{
    size_t at = (size_t)(line - f->code->first);
    f->row = at < f->code->n ? &f->code->rows[at] : NULL;
    f->start = now;
    f->lines = c->lines;
    f->calls = c->calls;
    if (f->row) ++*lines_open(c, f);
}

/* A line begins; the one before it in the same call ends. */
static inline void lines_line(struct line_ctx *c, PyObject *code, int line, uint64_t now)
{
    struct line_frame *f = c->n ? &c->frames[c->n - 1] : NULL;
    if (CALLS_UNLIKELY(!f || f->code->code != code)) { /* it ran already when recording began */
        struct line_code *known = lines_code(code);
        if (!known || !(f = lines_push(c, known))) return;
    }
    lines_close_row(c, f, now);
    c->lines++;
    lines_open_row(c, f, line, now);
    if (f->row) f->row->hits++;
}

#endif

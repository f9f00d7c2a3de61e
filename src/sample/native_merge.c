/* SPDX-License-Identifier: MIT
 * native_merge.c - frames of Python in the places of the native frames that run them. From 3.11 on one native frame
 * runs a function and those that it calls, up to the first that C called (py_frame.entry). */
#include "sample/native.h"
#include "sample/py_process.h"

struct merging {
    const struct py_stack *python;
    struct merged *out;
    size_t at; /* next frame of Python */
    tare_status status;
};

static void put(struct merging *m, bool python, size_t at)
{
    if (m->status == TARE_OK)
        m->status = vec_push(&m->out->frames, ((struct merged_frame){python, (uint32_t)at}), NULL);
}

/* Those that one native frame runs. */
static void put_group(struct merging *m)
{
    while (m->at < m->python->frames.n) {
        put(m, true, m->at);
        if (m->python->frames.items[m->at++].entry) return;
    }
}

static size_t groups_of(const struct py_stack *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->frames.n; i++) n += p->frames.items[i].entry || i + 1 == p->frames.n;
    return n;
}

/* Where their numbers differ, the thread was about to call or to return, and which of them lacks its other is to be
 * found at the innermost end: they are joined from the outermost on. A native stack that was cut has no such end. */
tare_status native_merge(const struct native_stack *native, const struct py_stack *python, struct merged *out)
{
    struct merging m = {.python = python, .out = out};
    size_t groups = groups_of(python), evals = 0, bare, more;
    vec_clear(&out->frames);
    for (size_t i = 0; i < native->frames.n; i++) evals += native->frames.items[i].eval;
    bool whole = native->end == NATIVE_WHOLE;
    bare = whole && evals > groups ? evals - groups : 0; /* native frames that run nothing yet */
    more = whole && groups > evals ? groups - evals : 0; /* groups whose native frame was not seen as one */
    out->uneven = whole && evals != groups;
    for (size_t i = 0; i < native->frames.n; i++) {
        bool runs = native->frames.items[i].eval;
        if (!runs || bare || m.at == python->frames.n) {
            bare -= runs && bare;
            put(&m, false, i);
            continue;
        }
        for (; more; more--) put_group(&m);
        put_group(&m);
    }
    while (m.at < python->frames.n) put_group(&m);
    return m.status;
}

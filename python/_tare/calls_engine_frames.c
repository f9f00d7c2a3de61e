/* SPDX-License-Identifier: MIT
 * calls_engine_frames.c - the fast mode before 3.12: PEP 523, a function in the place of the interpreter's
 * frame evaluation. Sees Python functions alone, at a fraction of the cost of events, in all threads. Chains
 * to the function that was there. Never lets a recursion that the program survives without it run out of C
 * stack. */
#include "calls_frame.h"

#if PY_VERSION_HEX < 0x030C0000

#include <pthread.h>
#include <stdio.h>

static _PyFrameEvalFunction before;
static uint64_t too_deep;

static PyObject *evaluate(PyThreadState *ts, frame_type *frame, int thrown);

/* From 3.11 a generator's frame runs once to make the generator, which is no call of it. */
static inline bool makes_generator(const frame_type *frame, const PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030B0000
    return code_kind(code) == CALL_RESUMED && frame->owner == FRAME_OWNED_BY_THREAD;
#else
    (void)frame;
    (void)code;
    return false;
#endif
}

static void find_floor(struct call_ctx *c)
{
    pthread_attr_t attr;
    void *low;
    size_t size;
    c->floor_known = true;
    if (pthread_getattr_np(pthread_self(), &attr) != 0) return;
    if (pthread_attr_getstack(&attr, &low, &size) == 0) c->stack_floor = (uintptr_t)low + size / 4;
    pthread_attr_destroy(&attr);
}

/* With the hook each call of Python takes C stack, which in 3.11 it does not without. When three quarters are
 * used up, the hook goes away until the frame that noticed returns; what is called meanwhile counts as that
 * frame's own. */
static PyObject *evaluate_unseen(PyThreadState *ts, frame_type *frame, int thrown)
{
    _PyInterpreterState_SetEvalFrameFunc(ts->interp, before);
    too_deep++;
    PyObject *result = before(ts, frame, thrown);
    if (calls_active && calls_active->engine == calls_fast_engine)
        _PyInterpreterState_SetEvalFrameFunc(ts->interp, evaluate);
    return result;
}

static PyObject *evaluate(PyThreadState *ts, frame_type *frame, int thrown)
{
    struct call_ctx *c = threads_mine();
    PyCodeObject *code = (PyCodeObject *)frame->f_code;
    if (CALLS_UNLIKELY(!c) || makes_generator(frame, code)) return before(ts, frame, thrown);
    if (CALLS_UNLIKELY(!c->floor_known)) find_floor(c);
    ctx_enter(c, code, (PyObject *)code, CALL_PYTHON);
    PyObject *result;
    if (CALLS_UNLIKELY((uintptr_t)&result < c->stack_floor))
        result = evaluate_unseen(ts, frame, thrown);
    else
        result = before(ts, frame, thrown);
    uint64_t now = calls_now();
    c = threads_mine(); /* a profile may have ended or begun in between */
    if (CALLS_LIKELY(c != NULL)) ctx_leave(c, code, now);
    return result;
}

static int frames_start(struct call_recorder *Py_UNUSED(rec))
{
    PyInterpreterState *interp = PyInterpreterState_Main();
    _PyFrameEvalFunction now = _PyInterpreterState_GetEvalFrameFunc(interp);
    if (now != evaluate) before = now;
    too_deep = 0;
    _PyInterpreterState_SetEvalFrameFunc(interp, evaluate);
    return 0;
}

/* Where somebody has put a hook over ours, ours stays, and does nothing but pass on. */
static void frames_stop(struct call_recorder *rec)
{
    PyInterpreterState *interp = PyInterpreterState_Main();
    if (_PyInterpreterState_GetEvalFrameFunc(interp) == evaluate)
        _PyInterpreterState_SetEvalFrameFunc(interp, before);
    else if (too_deep == 0)
        snprintf(rec->trouble, sizeof rec->trouble,
                 "another frame hook (PEP 523) was set while the profile ran: calls may be missing");
    if (too_deep)
        snprintf(rec->trouble, sizeof rec->trouble,
                 "the recursion was too deep for fast=True: %llu times the calls below were not recorded",
                 (unsigned long long)too_deep);
}

static const struct call_engine frames_engine = {"frame hook", frames_start, frames_stop, NULL, NULL};
const struct call_engine *const calls_fast_engine = &frames_engine;

#endif

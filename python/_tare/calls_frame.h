/* SPDX-License-Identifier: MIT
 * calls_frame.h - the code of a frame before 3.12. Include it first: 3.11 tells the layout in a private
 * header only, and the public call for it (PyFrame_GetCode) takes a fifth of the time that an event of ours
 * takes. Knows nothing of recording. */
#ifndef PYTHON_CALLS_FRAME_H
#define PYTHON_CALLS_FRAME_H

#include <patchlevel.h>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE 1
#endif

#include "calls.h"

#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>

typedef PyFrameObject frame_type; /* what a frame evaluation function is given */
static inline PyObject *frame_code(const PyFrameObject *frame)
{
    return (PyObject *)frame->f_code;
}
#elif PY_VERSION_HEX < 0x030C0000
#include <internal/pycore_frame.h>

typedef struct _PyInterpreterFrame frame_type;
static inline PyObject *frame_code(const PyFrameObject *frame)
{
    return (PyObject *)frame->f_frame->f_code;
}
#endif

#endif

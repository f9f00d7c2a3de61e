/* SPDX-License-Identifier: MIT
 * py_layout.h - where CPython keeps what we read, by version: offsets in bytes on 64-bit machines, of builds without
 * debugging. 3.13 says them itself (_Py_DebugOffsets); those before are in a table, made from their headers. None is
 * believed before it is tried: py_process.c looks whether what it leads to fits together. */
#ifndef SAMPLE_PY_LAYOUT_H
#define SAMPLE_PY_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/* One row per field: name. -1: this version has no such thing. */
#define PY_LAYOUT_MAP(X)                                                                                    \
    X(runtime_interpreters) X(interp_next) X(interp_threads) X(interp_gc)                                   \
    X(gil_pointer) /* in the interpreter: where its lock is; -1: in the runtime */                          \
    X(gil_holder) X(gil_locked)                                                                             \
    X(thread_next) X(thread_interp) X(thread_ident) X(thread_native) X(thread_frame)                        \
    X(thread_then) /* thread_frame holds the address of something that holds it there */                    \
    X(thread_chunk) /* of the frames; the next word is where the next frame will be */                      \
    X(frame_back) X(frame_code) X(frame_instruction) X(frame_owner) X(frame_locals)                         \
    X(code_file) X(code_name) X(code_first_line) X(code_table) X(code_bytecode)                             \
    X(code_names) /* a tuple of names of locals */                                                          \
    X(str_ascii) X(str_wide)

struct py_layout {
    uint32_t version;   /* 0x030b for 3.11 */
    bool frame_objects; /* before 3.11: frames are objects */
#define X(field) int32_t field;
    PY_LAYOUT_MAP(X)
#undef X
};

/* Of an object, in all of these versions. */
enum {
    PY_TYPE = 8,
    PY_SIZE = 16,
    PY_STR_STATE = 32,
    PY_BYTES_DATA = 32,
    PY_TUPLE_ITEMS = 24,
    PY_TYPE_NAME = 24
};
/* co_flags, an int; its bits of a generator, a coroutine, an asynchronous generator. */
enum { PY_FLAGS_OF_FRAME_OBJECTS = 36, PY_FLAGS = 48, PY_IS_GENERATOR = 0x20 | 0x80 | 0x200 };
enum { PY_OWNED_BY_C = 3 }; /* frame_owner: a frame that only marks where C called Python */

enum { PY_OLDEST = 0x0309, PY_SELF_TOLD = 0x030d };

/* From the table. NULL: not one we know. */
const struct py_layout *py_layout_known(uint32_t version);

/* From the first bytes of _PyRuntime of 3.13. An offset that cannot be is refused by name. */
enum { PY_OFFSETS_BYTES = 640 };
tare_status py_layout_told(struct py_layout *out, const uint8_t bytes[PY_OFFSETS_BYTES], tare_error *err);

#endif

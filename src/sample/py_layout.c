/* SPDX-License-Identifier: MIT
 * py_layout.c - where CPython keeps things: see py_layout.h. */
#include <assert.h>
#include <string.h>

#include "sample/py_layout.h"

/* clang-format off */
static const struct py_layout known[] = {
    {.version = 0x0309, .frame_objects = true,
     .runtime_interpreters = 32, .interp_next = 0, .interp_threads = 8, .interp_gc = 816,
     .gil_pointer = -1, .gil_holder = 360, .gil_locked = 368,
     .thread_next = 8, .thread_interp = 16, .thread_ident = 176, .thread_native = -1, .thread_frame = 24,
     .thread_then = -1, .thread_chunk = -1,
     .frame_back = 24, .frame_code = 32, .frame_instruction = 104, .frame_owner = -1, .frame_locals = 360,
     .code_file = 104, .code_name = 112, .code_first_line = 40, .code_table = 120, .code_bytecode = -1,
     .code_names = 72, .str_ascii = 48, .str_wide = 72},
    {.version = 0x030a, .frame_objects = true,
     .runtime_interpreters = 32, .interp_next = 0, .interp_threads = 8, .interp_gc = 816,
     .gil_pointer = -1, .gil_holder = 360, .gil_locked = 368,
     .thread_next = 8, .thread_interp = 16, .thread_ident = 176, .thread_native = -1, .thread_frame = 24,
     .thread_then = -1, .thread_chunk = -1,
     .frame_back = 24, .frame_code = 32, .frame_instruction = 96, .frame_owner = -1, .frame_locals = 352,
     .code_file = 104, .code_name = 112, .code_first_line = 40, .code_table = 120, .code_bytecode = -1,
     .code_names = 72, .str_ascii = 48, .str_wide = 72},
    {.version = 0x030b,
     .runtime_interpreters = 40, .interp_next = 0, .interp_threads = 16, .interp_gc = 848,
     .gil_pointer = -1, .gil_holder = 368, .gil_locked = 376,
     .thread_next = 8, .thread_interp = 16, .thread_ident = 152, .thread_native = 160, .thread_frame = 56,
     .thread_then = 8, .thread_chunk = 296,
     .frame_back = 48, .frame_code = 32, .frame_instruction = 56, .frame_owner = 69, .frame_locals = 72,
     .code_file = 112, .code_name = 128, .code_first_line = 72, .code_table = 136, .code_bytecode = 184,
     .code_names = 96, .str_ascii = 48, .str_wide = 72},
    {.version = 0x030c,
     .runtime_interpreters = 40, .interp_next = 0, .interp_threads = 72, .interp_gc = 312,
     .gil_pointer = 384, .gil_holder = 8, .gil_locked = 16,
     .thread_next = 8, .thread_interp = 16, .thread_ident = 136, .thread_native = 144, .thread_frame = 56,
     .thread_then = 0, .thread_chunk = 232,
     .frame_back = 8, .frame_code = 0, .frame_instruction = 56, .frame_owner = 70, .frame_locals = 72,
     .code_file = 112, .code_name = 128, .code_first_line = 68, .code_table = 136, .code_bytecode = 192,
     .code_names = 96, .str_ascii = 40, .str_wide = 56},
};
/* clang-format on */

const struct py_layout *py_layout_known(uint32_t version)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].version == version) return &known[i];
    return NULL;
}

/* ---- what 3.13 tells ---- */

/* Numbers of eight bytes: cookie, version, whether it is free-threaded; then groups, each with its size first. */
enum told_313 {
    TOLD_COOKIE,
    TOLD_VERSION,
    TOLD_FREE_THREADED,
    TOLD_RUNTIME_SIZE,
    TOLD_RUNTIME_INTERPRETERS = 5,
    TOLD_INTERP_SIZE,
    TOLD_INTERP_NEXT = 8,
    TOLD_INTERP_THREADS,
    TOLD_INTERP_GC,
    TOLD_GIL_POINTER = 14,
    TOLD_GIL_STATE,
    TOLD_GIL_LOCKED = 17,
    TOLD_GIL_HOLDER,
    TOLD_THREAD_SIZE,
    TOLD_THREAD_NEXT = 21,
    TOLD_THREAD_INTERP,
    TOLD_THREAD_FRAME,
    TOLD_THREAD_IDENT,
    TOLD_THREAD_NATIVE,
    TOLD_THREAD_CHUNK,
    TOLD_FRAME_SIZE = 28,
    TOLD_FRAME_BACK,
    TOLD_FRAME_CODE,
    TOLD_FRAME_INSTRUCTION,
    TOLD_FRAME_LOCALS,
    TOLD_FRAME_OWNER,
    TOLD_CODE_SIZE,
    TOLD_CODE_FILE,
    TOLD_CODE_NAME = 37,
    TOLD_CODE_TABLE,
    TOLD_CODE_FIRST_LINE,
    TOLD_CODE_NAMES = 41,
    TOLD_CODE_BYTECODE = 43,
    TOLD_OBJECT_SIZE,
    TOLD_OBJECT_TYPE,
    TOLD_TYPE_NAME = 47,
    TOLD_TUPLE_ITEMS = 51,
    TOLD_TUPLE_SIZE,
    TOLD_BYTES_SIZE = 65,
    TOLD_BYTES_DATA,
    TOLD_STR_SIZE,
    TOLD_STR_STATE,
    TOLD_STR_LENGTH,
    TOLD_STR_ASCII,
    TOLD_GC_SIZE,
    TOLD_GC_COLLECTING,
    TOLD_COUNT
};
static_assert(TOLD_COUNT * sizeof(uint64_t) <= PY_OFFSETS_BYTES, "all of them are read");

/* What the code of this reader takes for granted. */
static bool is_as_expected(const uint64_t *t)
{
    return t[TOLD_OBJECT_TYPE] == PY_TYPE && t[TOLD_TYPE_NAME] == PY_TYPE_NAME &&
           t[TOLD_TUPLE_ITEMS] == PY_TUPLE_ITEMS && t[TOLD_TUPLE_SIZE] == PY_SIZE &&
           t[TOLD_BYTES_SIZE] == PY_SIZE && t[TOLD_BYTES_DATA] == PY_BYTES_DATA &&
           t[TOLD_STR_STATE] == PY_STR_STATE && t[TOLD_STR_LENGTH] == PY_SIZE;
}

/* Each offset lies within what it is an offset of. */
static bool is_within(const uint64_t *t)
{
    static const struct {
        uint8_t of, first, last;
        uint64_t most;
    } groups[] = {
        {TOLD_RUNTIME_SIZE, TOLD_RUNTIME_INTERPRETERS, TOLD_RUNTIME_INTERPRETERS, 1 << 24},
        {TOLD_INTERP_SIZE, TOLD_INTERP_NEXT, TOLD_GIL_HOLDER, 1 << 24},
        {TOLD_THREAD_SIZE, TOLD_THREAD_NEXT, TOLD_THREAD_CHUNK, 4096},
        {TOLD_FRAME_SIZE, TOLD_FRAME_BACK, TOLD_FRAME_OWNER, 512},
        {TOLD_CODE_SIZE, TOLD_CODE_FILE, TOLD_CODE_BYTECODE, 1024},
        {TOLD_GC_SIZE, TOLD_GC_COLLECTING, TOLD_GC_COLLECTING, 1 << 20},
        {TOLD_STR_SIZE, TOLD_STR_STATE, TOLD_STR_ASCII, 256},
    };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        if (t[groups[i].of] > groups[i].most) return false;
        for (unsigned k = groups[i].first; k <= groups[i].last; k++)
            if (t[k] > t[groups[i].of]) return false;
    }
    return t[TOLD_GIL_HOLDER] >= t[TOLD_GIL_STATE] && t[TOLD_GIL_LOCKED] >= t[TOLD_GIL_STATE];
}

tare_status py_layout_told(struct py_layout *out, const uint8_t bytes[PY_OFFSETS_BYTES], tare_error *err)
{
    uint64_t t[TOLD_COUNT];
    memcpy(t, bytes, sizeof t);
    unsigned minor = t[TOLD_VERSION] >> 16 & 255;
    if (memcmp(bytes, "xdebugpy", 8) != 0)
        return error_set(err, TARE_UNSUPPORTED, "its table of offsets does not begin as one of CPython does");
    if (t[TOLD_VERSION] >> 16 != PY_SELF_TOLD)
        return error_set(err, TARE_UNSUPPORTED,
                         "Python 3.%u: where it keeps its frames is not known to this tare", minor);
    if (t[TOLD_FREE_THREADED])
        return error_set(err, TARE_UNSUPPORTED,
                         "a free-threaded build of Python keeps its frames in another way");
    if (!is_within(t) || !is_as_expected(t))
        return error_set(err, TARE_UNSUPPORTED, "its table of offsets makes no sense for Python 3.%u", minor);
#define T(name) (int32_t) t[TOLD_##name]
    *out = (struct py_layout){.version = PY_SELF_TOLD,
                              .runtime_interpreters = T(RUNTIME_INTERPRETERS),
                              .interp_next = T(INTERP_NEXT),
                              .interp_threads = T(INTERP_THREADS),
                              .interp_gc = T(INTERP_GC) + T(GC_COLLECTING),
                              .gil_pointer = T(GIL_POINTER),
                              .gil_holder = T(GIL_HOLDER) - T(GIL_STATE),
                              .gil_locked = T(GIL_LOCKED) - T(GIL_STATE),
                              .thread_next = T(THREAD_NEXT),
                              .thread_interp = T(THREAD_INTERP),
                              .thread_ident = T(THREAD_IDENT),
                              .thread_native = T(THREAD_NATIVE),
                              .thread_frame = T(THREAD_FRAME),
                              .thread_then = -1,
                              .thread_chunk = T(THREAD_CHUNK),
                              .frame_back = T(FRAME_BACK),
                              .frame_code = T(FRAME_CODE),
                              .frame_instruction = T(FRAME_INSTRUCTION),
                              .frame_owner = T(FRAME_OWNER),
                              .frame_locals = T(FRAME_LOCALS),
                              .code_file = T(CODE_FILE),
                              .code_name = T(CODE_NAME),
                              .code_first_line = T(CODE_FIRST_LINE),
                              .code_table = T(CODE_TABLE),
                              .code_bytecode = T(CODE_BYTECODE),
                              .code_names = T(CODE_NAMES),
                              .str_ascii = T(STR_ASCII),
                              .str_wide = 56};
#undef T
    return TARE_OK;
}

/* SPDX-License-Identifier: MIT
 * py_image.h - the memory of a process with a little interpreter of CPython 3.12 in it, made by hand: one thread, two
 * frames. For tests and for the fuzzer's first input. */
#ifndef TESTS_PY_IMAGE_H
#define TESTS_PY_IMAGE_H

#include <string.h>
#include <unistd.h>

#include "sample/py_process.h"

enum {
    IMAGE_BASE = 0x10000,
    IMAGE_BYTES = 0x6000,
    IMAGE_INTERP = 0x11000,
    IMAGE_THREAD = 0x12000,
    IMAGE_LOCK = 0x12800,
    IMAGE_CFRAME = 0x12c00,
    IMAGE_CHUNK = 0x13000,
    IMAGE_FRAME_1 = 0x13018,
    IMAGE_FRAME_2 = 0x13100,
    IMAGE_CODE_1 = 0x14000,
    IMAGE_CODE_2 = 0x14200,
    IMAGE_TEXT = 0x14800,
    IMAGE_TYPE = 0x15000,
    IMAGE_INT = 0x15400,
    IMAGE_TUPLE = 0x15600
};

struct py_image {
    uint8_t bytes[IMAGE_BYTES];
    size_t size;
    uint64_t text; /* where the next str goes */
};

static inline void image_u64(struct py_image *m, uint64_t at, uint64_t v)
{
    memcpy(m->bytes + (at - IMAGE_BASE), &v, sizeof v);
}

static inline uint64_t image_str(struct py_image *m, const char *s)
{
    uint64_t at = m->text;
    uint32_t state = 1 << 2 | 1 << 5 | 1 << 6; /* one byte each, compact, ASCII */
    image_u64(m, at + PY_SIZE, strlen(s));
    memcpy(m->bytes + (at + PY_STR_STATE - IMAGE_BASE), &state, sizeof state);
    memcpy(m->bytes + (at + 40 - IMAGE_BASE), s, strlen(s));
    m->text += 64;
    return at;
}

static inline void image_code(struct py_image *m, uint64_t at, const char *name, uint32_t line)
{
    uint64_t table = m->text;
    image_u64(m, table + PY_SIZE, 2);
    m->bytes[table + PY_BYTES_DATA - IMAGE_BASE] =
        0x80 | 13 << 3 | 7; /* no column, 8 units, the first line */
    m->text += 64;
    image_u64(m, at + PY_TYPE, IMAGE_TYPE);
    image_u64(m, at + PY_SIZE, 8);
    image_u64(m, at + 112, image_str(m, "image.py"));
    image_u64(m, at + 128, image_str(m, name));
    image_u64(m, at + 136, table);
    image_u64(m, at + 96, IMAGE_TUPLE);
    memcpy(m->bytes + (at + 68 - IMAGE_BASE), &line, sizeof line);
}

static inline void image_frame(struct py_image *m, uint64_t at, uint64_t code, uint64_t back)
{
    image_u64(m, at, code);
    image_u64(m, at + 8, back);
    image_u64(m, at + 56, code + 192 + 4);
    image_u64(m, at + 72, IMAGE_INT);
}

static inline void image_make(struct py_image *m)
{
    *m = (struct py_image){.size = IMAGE_BYTES, .text = IMAGE_TEXT};
    image_u64(m, IMAGE_BASE + 40, IMAGE_INTERP);
    image_u64(m, IMAGE_INTERP + 72, IMAGE_THREAD);
    image_u64(m, IMAGE_INTERP + 384, IMAGE_LOCK);
    image_u64(m, IMAGE_LOCK + 8, IMAGE_THREAD);
    image_u64(m, IMAGE_LOCK + 16, 1);
    image_u64(m, IMAGE_THREAD + 16, IMAGE_INTERP);
    image_u64(m, IMAGE_THREAD + 136, 77);
    image_u64(m, IMAGE_THREAD + 144, (uint64_t)getpid());
    image_u64(m, IMAGE_THREAD + 56, IMAGE_CFRAME);
    image_u64(m, IMAGE_THREAD + 232, IMAGE_CHUNK);
    image_u64(m, IMAGE_THREAD + 240, IMAGE_FRAME_2 + 200);
    image_u64(m, IMAGE_CFRAME, IMAGE_FRAME_2);
    image_u64(m, IMAGE_TUPLE + PY_SIZE, 1);
    image_u64(m, IMAGE_TUPLE + PY_TUPLE_ITEMS, image_str(m, "number"));
    image_u64(m, IMAGE_INT + PY_TYPE, IMAGE_INT + 64);
    image_u64(m, IMAGE_INT + PY_SIZE, 1 << 3);
    image_u64(m, IMAGE_INT + 24, 42);
    image_u64(m, IMAGE_INT + 64 + PY_TYPE_NAME, IMAGE_INT + 128);
    memcpy(m->bytes + (IMAGE_INT + 128 - IMAGE_BASE), "int", 4);
    image_code(m, IMAGE_CODE_1, "outer", 10);
    image_code(m, IMAGE_CODE_2, "Inner.most", 20);
    image_frame(m, IMAGE_FRAME_1, IMAGE_CODE_1, 0);
    image_frame(m, IMAGE_FRAME_2, IMAGE_CODE_2, IMAGE_FRAME_1);
}

static inline size_t image_parts(const struct peek *p, const struct peek_part *parts, size_t n)
{
    const struct py_image *m = p->image;
    for (size_t i = 0; i < n; i++) {
        if (parts[i].at < IMAGE_BASE || parts[i].at - IMAGE_BASE > m->size ||
            m->size - (parts[i].at - IMAGE_BASE) < parts[i].bytes)
            return i;
        memcpy(parts[i].to, m->bytes + (parts[i].at - IMAGE_BASE), parts[i].bytes);
    }
    return n;
}

/* As py_open() would leave it. */
static inline struct py_process image_process(const struct py_image *m, uint32_t version)
{
    struct py_process p = PY_PROCESS_INIT;
    p.peek = (struct peek){getpid(), image_parts, m};
    p.at = *py_layout_known(version);
    p.runtime = IMAGE_BASE;
    p.code_type = IMAGE_TYPE;
    return p;
}

#endif

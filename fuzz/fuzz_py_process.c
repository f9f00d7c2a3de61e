/* SPDX-License-Identifier: MIT
 * fuzz_py_process.c - the memory of a Python process of any bytes: an ELF image, offsets that it tells of itself,
 * threads, frames, functions, values. Each walk has an end, nothing is read beyond what is there. */
#include <stdlib.h>

#include "tests/unit/py_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void drop(void *ctx, const char *name, const char *value)
{
    (void)ctx, (void)name, (void)value;
}

static void walk(struct py_process *p)
{
    struct py_threads t = {.items = VEC_INIT};
    struct py_stack stack = {.frames = VEC_INIT};
    if (py_threads_read(p, &t, NULL) == TARE_OK)
        for (size_t i = 0; i < t.items.n && i < 4; i++) {
            for (unsigned again = 0; again < 2; again++)
                if (!py_stack_read(p, &t.items.items[i], &stack)) break;
            for (size_t k = 0; k < stack.frames.n && k < 4; k++) {
                py_line(p, &stack.frames.items[k]);
                py_locals(p, &stack.frames.items[k], drop, NULL);
            }
        }
    vec_release(&stack.frames);
    vec_release(&t.items);
    py_release(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct py_image m;
    static const uint32_t versions[] = {0x030c, 0x0309, 0x030a, 0x030b};
    if (size < 2) return 0;
    m.size = size - 1 < sizeof m.bytes ? size - 1 : sizeof m.bytes;
    memcpy(m.bytes, data + 1, m.size);
    struct peek from = {getpid(), image_parts, &m};
    struct elf_loaded e;
    uint64_t at;
    if (elf_open(&e, &from, IMAGE_BASE)) elf_find(&e, "_PyRuntime", &at);
    struct py_process p = image_process(&m, versions[data[0] & 3]);
    if (data[0] & 4 && m.size >= PY_OFFSETS_BYTES && py_layout_told(&p.at, m.bytes, NULL) != TARE_OK)
        return 0;
    walk(&p);
    return 0;
}

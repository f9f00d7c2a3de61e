/* SPDX-License-Identifier: MIT
 * npz_write.h - arrays as .npy and .npz files, for tests of their readers and for others to see what ran. */
#ifndef TESTS_NPZ_WRITE_H
#define TESTS_NPZ_WRITE_H

#include <string.h>
#include <zlib.h>

#include "core/file.h"
#include "subject/tensor.h"

__attribute__((unused)) static tare_status tensor_write_npy(const struct tensor *t, struct buf *out,
                                                            tare_error *err)
{
    static const struct {
        int type;
        char kind;
        unsigned bytes;
    } types[] = {
        {ONNX_FLOAT, 'f', 4},     {ONNX_DOUBLE, 'f', 8},      {ONNX_FLOAT16, 'f', 2}, {ONNX_BOOL, 'b', 1},
        {ONNX_INT8, 'i', 1},      {ONNX_INT16, 'i', 2},       {ONNX_INT32, 'i', 4},   {ONNX_INT64, 'i', 8},
        {ONNX_UINT8, 'u', 1},     {ONNX_UINT16, 'u', 2},      {ONNX_UINT32, 'u', 4},  {ONNX_UINT64, 'u', 8},
        {ONNX_COMPLEX64, 'c', 8}, {ONNX_COMPLEX128, 'c', 16},
    };
    struct buf head = BUF_INIT;
    size_t k = 0;
    while (k < sizeof types / sizeof *types && types[k].type != t->type) k++;
    if (k == sizeof types / sizeof *types)
        return error_set(err, TARE_UNSUPPORTED, "%s: .npy has no element type for %s", t->name,
                         onnx_type_name(t->type));
    buf_printf(&head, "{'descr': '%c%c%u', 'fortran_order': False, 'shape': (",
               types[k].bytes == 1 ? '|' : '<', types[k].kind, types[k].bytes);
    for (size_t d = 0; d < t->rank; d++) buf_printf(&head, "%s%lld", d ? ", " : "", (long long)t->dims[d]);
    buf_add_str(&head, t->rank == 1 ? ",), }" : "), }");
    while ((10 + head.len + 1) % 64) buf_add_char(&head, ' '); /* the data begins on a multiple of 64 */
    buf_add_char(&head, '\n');
    tare_status s = buf_status(&head, err);
    if (s == TARE_OK) {
        buf_add(out, "\x93NUMPY\x01\x00", 8);
        buf_add_char(out, (char)(head.len & 255));
        buf_add_char(out, (char)(head.len >> 8));
        buf_add(out, head.data, head.len);
        buf_add(out, t->data, t->bytes);
        s = buf_status(out, err);
    }
    buf_release(&head);
    return s;
}

/* ---- writing: stored, sizes below 4 GiB per member ---- */

static void put(struct buf *b, uint64_t v, unsigned n)
{
    for (unsigned i = 0; i < n; i++) buf_add_char(b, (char)(v >> 8 * i & 255));
}

/* The fields that local and central headers share, from "version needed" on. */
static void put_common(struct buf *b, const char *name, uint32_t crc, uint64_t size)
{
    put(b, 20, 2);
    put(b, 0, 2);
    put(b, 0, 2);
    put(b, 0, 2);  /* time: midnight */
    put(b, 33, 2); /* date: 1980-01-01, so that the same arrays make the same file */
    put(b, crc, 4);
    put(b, size, 4);
    put(b, size, 4);
    put(b, strlen(name) + 4, 2);
    put(b, 0, 2);
}

static tare_status put_member(struct buf *file, struct buf *directory, const struct tensor *t,
                              tare_error *err)
{
    struct buf npy = BUF_INIT;
    tare_status s = tensor_write_npy(t, &npy, err);
    if (s == TARE_OK && (npy.len >= UINT32_MAX || file->len >= UINT32_MAX)) {
        s = error_set(err, TARE_UNSUPPORTED, "array '%s': an archive of 4 GiB or more", t->name);
    }
    if (s == TARE_OK) {
        uint32_t crc = (uint32_t)crc32(0, (const unsigned char *)npy.data, (unsigned)npy.len);
        buf_add(directory, "PK\1\2", 4);
        put(directory, 20, 2);
        put_common(directory, t->name, crc, npy.len);
        put(directory, 0, 2 + 2 + 2); /* comment, disk, attributes */
        put(directory, 0, 4);
        put(directory, file->len, 4);
        buf_printf(directory, "%s.npy", t->name);
        buf_add(file, "PK\3\4", 4);
        put_common(file, t->name, crc, npy.len);
        buf_printf(file, "%s.npy", t->name);
        buf_add(file, npy.data, npy.len);
    }
    buf_release(&npy);
    return s;
}

__attribute__((unused)) static tare_status tensor_save_npz(const struct tensor_set *set, const char *path,
                                                           tare_error *err)
{
    struct buf file = BUF_INIT, directory = BUF_INIT;
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < set->items.n; i++)
        s = put_member(&file, &directory, &set->items.items[i], err);
    if (s == TARE_OK && set->items.n > UINT16_MAX)
        s = error_set(err, TARE_UNSUPPORTED, "%s: too many arrays", path);
    uint64_t at = file.len, n = directory.len;
    buf_add(&file, directory.data, directory.len);
    buf_add(&file, "PK\5\6", 4);
    put(&file, 0, 4);
    put(&file, set->items.n, 2);
    put(&file, set->items.n, 2);
    put(&file, n, 4);
    put(&file, at, 4);
    put(&file, 0, 2);
    if (s == TARE_OK) s = buf_status(&directory, err);
    if (s == TARE_OK) s = buf_status(&file, err);
    if (s == TARE_OK) s = file_write_atomic(path, file.data, file.len, 0, err);
    buf_release(&directory);
    buf_release(&file);
    return s;
}

#endif

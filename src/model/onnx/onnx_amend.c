/* SPDX-License-Identifier: MIT
 * onnx_amend.c - see onnx_write.h. Address space is reserved for both parts; the file is mapped privately over its
 * beginning, so that the rest of its last page can be written without the file ever changing. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/wire.h"
#include "model/onnx/onnx_write.h"

/* Field numbers of onnx.proto. */
enum { MODEL_GRAPH = 7, GRAPH_OUTPUT = 12, VALUE_NAME = 1 };

static void encode_outputs(struct buf *out, const char *const *names, size_t n)
{
    struct buf graph = BUF_INIT, value = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        wire_add_str(&value, VALUE_NAME, names[i]);
        wire_add_message(&graph, GRAPH_OUTPUT, &value);
    }
    wire_add_message(out, MODEL_GRAPH, &graph);
    buf_release(&value);
    buf_release(&graph);
}

static tare_status map_both(struct onnx_amended *out, int fd, size_t size, const struct buf *more)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped = (size + more->len + page - 1) / page * page;
    char *base = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return TARE_NOMEM;
    if (mmap(base, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd, 0) ==
        MAP_FAILED) {
        munmap(base, mapped);
        return TARE_NOMEM;
    }
    memcpy(base + size, more->data, more->len);
    *out = (struct onnx_amended){base, size + more->len, mapped};
    return TARE_OK;
}

static tare_status amend_fd(struct onnx_amended *out, int fd, const char *path, const struct buf *more,
                            tare_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0) return error_errno(err, "%s", path);
    if (!S_ISREG(st.st_mode) || st.st_size <= 0)
        return error_set(err, TARE_INVALID, "%s: no regular file, or an empty one", path);
    if ((uint64_t)st.st_size + more->len > OW_FILE_MAX)
        return error_set(err, TARE_UNSUPPORTED, "%s: larger than a model in one file may be (2 GiB)", path);
    tare_status s = map_both(out, fd, (size_t)st.st_size, more);
    return s == TARE_OK ? s : error_set(err, s, "%s: cannot map it", path);
}

tare_status onnx_amend_outputs(struct onnx_amended *out, const char *path, const char *const *names, size_t n,
                               tare_error *err)
{
    struct buf more = BUF_INIT;
    if (n) encode_outputs(&more, names, n);
    tare_status s = buf_status(&more, err);
    if (s == TARE_OK) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        s = fd < 0 ? error_errno(err, "%s", path) : amend_fd(out, fd, path, &more, err);
        if (fd >= 0) close(fd);
    }
    buf_release(&more);
    return s;
}

void onnx_amended_release(struct onnx_amended *a)
{
    if (a->mapped) munmap((void *)(uintptr_t)a->bytes, a->mapped);
    *a = (struct onnx_amended)ONNX_AMENDED_INIT;
}

/* SPDX-License-Identifier: MIT
 * looks.c - see looks.h. */
#include "core/looks.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/str.h"

struct lookalike {
    size_t at;
    const char *magic;
    const char *what;
};

static const struct lookalike lookalikes[] = {
    {0, "version https://git-lfs", "looks like a Git LFS pointer: fetch the real file (git lfs pull)"},
    {0, "PK\003\004", "looks like a zip archive (PyTorch?): export the model to ONNX"},
    {0, "\200\002", "looks like a Python pickle (PyTorch?): export the model to ONNX"},
    {0, "\200\004\225", "looks like a Python pickle: export the model to ONNX"},
    {4, "ORTM", "looks like a model in ORT format, not ONNX"},
    {4, "TFL3", "looks like a TensorFlow Lite model"},
    {0, "GGUF", "looks like a GGUF file"},
    {0, "\211HDF", "looks like an HDF5 file (Keras?)"},
    {0, "\037\213", "looks like a gzip file: unpack it"},
    {0, "\050\265\057\375", "looks like a zstd file: unpack it"},
    {0, "BZh", "looks like a bzip2 file: unpack it"},
    {0, "\177ELF", "looks like a program or library"},
    {0, "\223NUMPY", "looks like a NumPy array"},
    {0, "SQLite format 3", "looks like a history of tare or another SQLite file"},
    {8, "{\"", "looks like a safetensors file: weights without a graph"},
};

/* Text has no bytes below space but white ones; a model has some in its first few fields. */
static const char *text_kind(const uint8_t *bytes, size_t n, enum looks_wanted wanted)
{
    size_t first = 0, look = n < 256 ? n : 256;
    for (size_t i = 0; i < look; i++) {
        if (bytes[i] < 32 && !strchr("\t\n\r\f", bytes[i])) return NULL;
        if (bytes[i] == 0) return NULL;
    }
    size_t whole = look; /* not cut inside a character by us */
    while (look < n && whole && look - whole < 4 && bytes[whole - 1] >= 0x80) whole--;
    if (!str_is_utf8((const char *)bytes, whole)) return NULL;
    if (n >= 3 && memcmp(bytes, "\357\273\277", 3) == 0) first = 3;
    while (first < look && strchr(" \t\r\n", bytes[first])) first++;
    if (first == look) return "looks like text";
    if (bytes[first] == '<') return "looks like a web page (HTML) or XML: was the download an error page?";
    if (bytes[first] == '{' || bytes[first] == '[') return wanted == LOOKS_JSON ? NULL : "looks like JSON";
    return "looks like text";
}

/* Its version of the format first, in one byte, then a field of a model. */
static bool is_model(const uint8_t *bytes, size_t n)
{
    return n > 2 && bytes[0] == 8 && bytes[1] > 0 && bytes[1] < 32 &&
           strchr("\022\032\042\050\062\072\102", bytes[2]) && bytes[2];
}

const char *looks_like(const void *bytes, size_t n, enum looks_wanted wanted)
{
    if (wanted != LOOKS_TRACE && n >= 5 && memcmp(bytes, "\211TARE", 5) == 0)
        return "looks like a trace of tare (tare report shows it)";
    if (wanted != LOOKS_MODEL && is_model(bytes, n))
        return "looks like an ONNX model (tare inspect shows it, tare bench measures it)";
    for (size_t i = 0; i < sizeof lookalikes / sizeof *lookalikes; i++) {
        const struct lookalike *l = &lookalikes[i];
        size_t len = strlen(l->magic);
        if (n >= l->at + len && memcmp((const char *)bytes + l->at, l->magic, len) == 0) return l->what;
    }
    return text_kind(bytes, n, wanted);
}

/* SPDX-License-Identifier: MIT
 * codec.c - see codec.h: one row per library, one small function each way. */
#include "core/codec.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

enum { CODEC_CALLS = 4 };

struct codec {
    const char *name, *library, *symbols[CODEC_CALLS];
    void *calls[CODEC_CALLS]; /* in the order of `symbols`; filled on first use */
    size_t most;
    size_t (*bound)(const struct codec *c, size_t n);
    tare_status (*pack)(const struct codec *c, int level, struct codec_bytes from, void *to, size_t *n);
    tare_status (*unpack)(const struct codec *c, struct codec_bytes from, void *to, size_t n);
};

/* ---- zstd ---- */

static size_t zstd_bound(const struct codec *c, size_t n)
{
    return ((size_t(*)(size_t))c->calls[0])(n);
}

static tare_status zstd_pack(const struct codec *c, int level, struct codec_bytes from, void *to, size_t *n)
{
    size_t got =
        ((size_t(*)(void *, size_t, const void *, size_t, int))c->calls[1])(to, *n, from.data, from.n, level);
    if (((unsigned (*)(size_t))c->calls[3])(got)) return TARE_FORMAT;
    *n = got;
    return TARE_OK;
}

static tare_status zstd_unpack(const struct codec *c, struct codec_bytes from, void *to, size_t n)
{
    size_t got = ((size_t(*)(void *, size_t, const void *, size_t))c->calls[2])(to, n, from.data, from.n);
    return got == n ? TARE_OK : TARE_FORMAT; /* an error is a number that no length can be */
}

/* ---- lz4 ---- */

static size_t lz4_bound(const struct codec *c, size_t n)
{
    return (size_t)((int (*)(int))c->calls[0])((int)n);
}

static tare_status lz4_pack(const struct codec *c, int level, struct codec_bytes from, void *to, size_t *n)
{
    int got = ((int (*)(const void *, void *, int, int, int))c->calls[1])(from.data, to, (int)from.n, (int)*n,
                                                                          level);
    if (got <= 0) return TARE_FORMAT;
    *n = (size_t)got;
    return TARE_OK;
}

static tare_status lz4_unpack(const struct codec *c, struct codec_bytes from, void *to, size_t n)
{
    if (from.n > INT_MAX || n > INT_MAX) return TARE_FORMAT;
    int got = ((int (*)(const void *, void *, int, int))c->calls[2])(from.data, to, (int)from.n, (int)n);
    return got >= 0 && (size_t)got == n ? TARE_OK : TARE_FORMAT;
}

/* ---- zlib ---- */

static size_t zlib_bound(const struct codec *c, size_t n)
{
    return ((unsigned long (*)(unsigned long))c->calls[0])(n);
}

static tare_status zlib_pack(const struct codec *c, int level, struct codec_bytes from, void *to, size_t *n)
{
    unsigned long got = *n;
    int (*call)(void *, unsigned long *, const void *, unsigned long, int) = c->calls[1];
    if (call(to, &got, from.data, from.n, level) != 0) return TARE_FORMAT;
    *n = got;
    return TARE_OK;
}

static tare_status zlib_unpack(const struct codec *c, struct codec_bytes from, void *to, size_t n)
{
    unsigned long got = n;
    int (*call)(void *, unsigned long *, const void *, unsigned long) = c->calls[2];
    return call(to, &got, from.data, from.n) == 0 && got == n ? TARE_OK : TARE_FORMAT;
}

static struct codec codecs[] = {
    {"zstd", "libzstd.so.1", {"ZSTD_compressBound", "ZSTD_compress", "ZSTD_decompress", "ZSTD_isError"}, {NULL},
     SIZE_MAX / 2, zstd_bound, zstd_pack, zstd_unpack},
    {"lz4", "liblz4.so.1", {"LZ4_compressBound", "LZ4_compress_fast", "LZ4_decompress_safe", NULL}, {NULL},
     0x7e000000, lz4_bound, lz4_pack, lz4_unpack},
    {"zlib", "libz.so.1", {"compressBound", "compress2", "uncompress", NULL}, {NULL},
     SIZE_MAX / 2, zlib_bound, zlib_pack, zlib_unpack},
};
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

/* calls[0] last: who sees it sees all. */
static tare_status load(struct codec *c, tare_error *err)
{
    void *lib = dlopen(c->library, RTLD_NOW | RTLD_LOCAL);
    if (!lib) return error_set(err, TARE_UNSUPPORTED, "%s: %s is not on this machine", c->name, c->library);
    for (int i = CODEC_CALLS - 1; i >= 0; i--) {
        if (!c->symbols[i] || (c->calls[i] = dlsym(lib, c->symbols[i]))) continue;
        dlclose(lib);
        return error_set(err, TARE_UNSUPPORTED, "%s: %s has no %s", c->name, c->library, c->symbols[i]);
    }
    return TARE_OK;
}

const struct codec *codec_find(const char *name, tare_error *err)
{
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        if (strcmp(codecs[i].name, name) != 0) continue;
        pthread_mutex_lock(&loading);
        tare_status s = codecs[i].calls[0] ? TARE_OK : load(&codecs[i], err);
        pthread_mutex_unlock(&loading);
        return s < 0 ? NULL : &codecs[i];
    }
    error_set(err, TARE_INVALID, "'%s' is no codec: zstd, lz4 and zlib are", name);
    return NULL;
}

size_t codec_bound(const struct codec *c, size_t n)
{
    return n > c->most ? 0 : c->bound(c, n);
}

tare_status codec_pack(const struct codec *c, int level, struct codec_bytes from, void *to, size_t *n)
{
    return c->pack(c, level, from, to, n);
}

tare_status codec_unpack(const struct codec *c, struct codec_bytes from, void *to, size_t n)
{
    return c->unpack(c, from, to, n);
}

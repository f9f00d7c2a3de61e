/* SPDX-License-Identifier: MIT
 * npz.c - several arrays in one file: a zip archive whose members are .npy files, stored or deflated, small or
 * "zip64". Goes by the central directory, checks every offset, size and checksum, and inflates through zlib. What would
 * grow too far is refused before memory is asked for: a member beyond what deflate can do or beyond what the header of
 * its array says, and compressed arrays of more than INFLATED_MAX together. */
#include <string.h>
#include <zlib.h>

#include "subject/tensor.h"

enum {
    LOCAL_SIZE = 30,
    CENTRAL_SIZE = 46,
    END_SIZE = 22,
    END64_SIZE = 56,
    LOCATOR_SIZE = 20,
    COMMENT_MAX = 65535,
    GROWTH_MAX = 1040, /* deflate: at most 258 bytes from two bits */
    MEMBERS_MAX = 10000,
    STORED = 0,
    DEFLATED = 8,
    ENCRYPTED = 1
};

#define INFLATED_MAX ((uint64_t)1 << 30) /* what is stored plainly is as large as its file, and has no limit */

struct zip {
    const char *name;
    const uint8_t *bytes;
    size_t size;
    uint64_t directory, directory_bytes, members;
};

struct member {
    char name[512]; /* without .npy */
    unsigned flags, method;
    uint32_t crc;
    uint64_t packed, plain, local;
};

static uint64_t get(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = n; i-- > 0;) v = v << 8 | p[i];
    return v;
}

static bool inside(const struct zip *z, uint64_t at, uint64_t n)
{
    return at <= z->size && n <= z->size - at;
}

static tare_status damaged(const struct zip *z, const char *what, tare_error *err)
{
    return error_set(err, TARE_FORMAT, "%s: damaged .npz: %s", z->name, what);
}

/* ---- the directory ---- */

/* The record before the end that zip64 archives have, where any of the usual fields is full. */
static tare_status read_end64(struct zip *z, uint64_t end, tare_error *err)
{
    if (end < LOCATOR_SIZE || memcmp(z->bytes + end - LOCATOR_SIZE, "PK\6\7", 4) != 0) return TARE_OK;
    uint64_t at = get(z->bytes + end - LOCATOR_SIZE + 8, 8);
    if (!inside(z, at, END64_SIZE) || memcmp(z->bytes + at, "PK\6\6", 4) != 0)
        return damaged(z, "its zip64 end record is not where it should be", err);
    z->members = get(z->bytes + at + 32, 8);
    z->directory_bytes = get(z->bytes + at + 40, 8);
    z->directory = get(z->bytes + at + 48, 8);
    return TARE_OK;
}

/* The end record stands before a comment of unknown length: searched from the end, and taken only where
 * its length fits, since the comment may hold such bytes itself. */
static tare_status read_end(struct zip *z, tare_error *err)
{
    if (z->size < END_SIZE) return damaged(z, "shorter than any archive", err);
    uint64_t at = z->size - END_SIZE, first = at > COMMENT_MAX ? at - COMMENT_MAX : 0;
    for (;; at--) {
        if (memcmp(z->bytes + at, "PK\5\6", 4) == 0 && get(z->bytes + at + 20, 2) == z->size - END_SIZE - at)
            break;
        if (at == first)
            return damaged(z, "no end of the archive is to be found; is the file cut short?", err);
    }
    z->members = get(z->bytes + at + 10, 2);
    z->directory_bytes = get(z->bytes + at + 12, 4);
    z->directory = get(z->bytes + at + 16, 4);
    tare_status s = read_end64(z, at, err);
    if (s < 0) return s;
    if (!inside(z, z->directory, z->directory_bytes))
        return damaged(z, "its directory lies outside the file", err);
    return TARE_OK;
}

/* Sizes of 2^32 - 1 stand in the extra field of kind 1, in this order, only those that are full. */
static bool read_extra64(struct member *m, const uint8_t *p, size_t n)
{
    uint64_t *const fields[] = {&m->plain, &m->packed, &m->local};
    while (n >= 4) {
        size_t kind = (size_t)get(p, 2), len = (size_t)get(p + 2, 2);
        if (len > n - 4) return false;
        const uint8_t *at = p + 4;
        for (size_t i = 0, left = len; kind == 1 && i < 3; i++) {
            if (*fields[i] != UINT32_MAX) continue;
            if (left < 8) return false;
            *fields[i] = get(at, 8);
            at += 8;
            left -= 8;
        }
        p += 4 + len;
        n -= 4 + len;
    }
    return true;
}

/* The entry at *at, which moves on. *skip: a folder, nothing to read. */
static tare_status read_entry(const struct zip *z, uint64_t *at, struct member *m, bool *skip,
                              tare_error *err)
{
    const uint8_t *p = z->bytes + *at;
    uint64_t left = z->directory + z->directory_bytes - *at;
    if (left < CENTRAL_SIZE || memcmp(p, "PK\1\2", 4) != 0)
        return damaged(z, "its directory ends early", err);
    size_t name = (size_t)get(p + 28, 2), extra = (size_t)get(p + 30, 2), comment = (size_t)get(p + 32, 2);
    if (left - CENTRAL_SIZE < name + extra + comment)
        return damaged(z, "its directory ends within an entry", err);
    if (name == 0 || name >= sizeof m->name || memchr(p + CENTRAL_SIZE, 0, name))
        return damaged(z, "a member's name is empty, too long or not text", err);
    *m = (struct member){.flags = (unsigned)get(p + 8, 2),
                         .method = (unsigned)get(p + 10, 2),
                         .crc = (uint32_t)get(p + 16, 4),
                         .packed = get(p + 20, 4),
                         .plain = get(p + 24, 4),
                         .local = get(p + 42, 4)};
    memcpy(m->name, p + CENTRAL_SIZE, name);
    if (!read_extra64(m, p + CENTRAL_SIZE + name, extra)) return damaged(z, "an extra field is damaged", err);
    *at += CENTRAL_SIZE + name + extra + comment;
    *skip = m->name[name - 1] == '/';
    if (*skip) return TARE_OK;
    if (name < 5 || strcmp(m->name + name - 4, ".npy") != 0)
        return error_set(err, TARE_INVALID, "%s: member '%.200s' is no .npy array", z->name, m->name);
    m->name[name - 4] = 0;
    return TARE_OK;
}

/* ---- the members ---- */

/* The first `n` bytes of the member. All of them: then its data must end there, too. */
static tare_status inflate_member(const struct member *m, const uint8_t *packed, uint8_t *out, uint64_t n,
                                  tare_error *err)
{
    z_stream zs = {0};
    uint64_t in_left = m->packed, out_left = n;
    if (inflateInit2(&zs, -MAX_WBITS) != Z_OK) return error_set(err, TARE_NOMEM, "out of memory to inflate");
    zs.next_in = (Bytef *)(uintptr_t)packed; /* zlib only reads it */
    zs.next_out = out;
    int rc = Z_OK;
    while (rc == Z_OK) { /* in parts: zlib counts in 32 bits */
        if (zs.avail_in == 0) {
            zs.avail_in = in_left > 1 << 30 ? 1 << 30 : (uInt)in_left;
            in_left -= zs.avail_in;
        }
        if (zs.avail_out == 0) {
            zs.avail_out = out_left > 1 << 30 ? 1 << 30 : (uInt)out_left;
            out_left -= zs.avail_out;
        }
        rc = inflate(&zs, Z_NO_FLUSH);
    }
    bool full = out_left == 0 && zs.avail_out == 0;
    bool whole = n < m->plain ? full : full && rc == Z_STREAM_END && in_left == 0 && zs.avail_in == 0;
    inflateEnd(&zs);
    if (rc == Z_MEM_ERROR) return error_set(err, TARE_NOMEM, "out of memory to inflate");
    return whole ? TARE_OK : error_set(err, TARE_FORMAT, "its deflated data are damaged");
}

static uint32_t crc_of(const uint8_t *p, uint64_t n)
{
    uLong crc = crc32(0, NULL, 0);
    while (n) {
        uInt part = n > 1 << 30 ? 1 << 30 : (uInt)n;
        crc = crc32(crc, p, part);
        p += part;
        n -= part;
    }
    return (uint32_t)crc;
}

/* Where the member's bytes begin, after checks that need no memory. */
static tare_status locate(const struct zip *z, const struct member *m, const uint8_t **data, tare_error *err)
{
    if (m->flags & ENCRYPTED) return error_set(err, TARE_UNSUPPORTED, "it is encrypted");
    if (m->method != STORED && m->method != DEFLATED)
        return error_set(err, TARE_UNSUPPORTED, "compression method %u; stored and deflated are read",
                         m->method);
    if (!inside(z, m->local, LOCAL_SIZE) || memcmp(z->bytes + m->local, "PK\3\4", 4) != 0)
        return error_set(err, TARE_FORMAT, "its data are not where the directory says");
    uint64_t at = m->local + LOCAL_SIZE + get(z->bytes + m->local + 26, 2) + get(z->bytes + m->local + 28, 2);
    if (!inside(z, at, m->packed)) return error_set(err, TARE_FORMAT, "its data end outside the file");
    if (m->method == STORED && m->packed != m->plain)
        return error_set(err, TARE_FORMAT, "stored, but of two sizes");
    if (m->plain / GROWTH_MAX > m->packed)
        return error_set(err, TARE_FORMAT, "its size is more than deflate can give");
    *data = z->bytes + at;
    return TARE_OK;
}

/* Inflates no more than the header of the array, and compares what it says with what the archive says. */
static tare_status check_header(const struct member *m, const uint8_t *packed, tare_error *err)
{
    uint64_t n = m->plain < TENSOR_NPY_HEAD_MAX ? m->plain : TENSOR_NPY_HEAD_MAX;
    uint8_t *head = mem_new((size_t)n, 1);
    if (!head) return error_set(err, TARE_NOMEM, "out of memory");
    uint64_t bytes = 0;
    tare_status s = inflate_member(m, packed, head, n, err);
    if (s == TARE_OK) s = tensor_npy_bytes(m->name, head, (size_t)n, &bytes, err);
    if (s == TARE_OK && bytes != m->plain)
        s = error_set(err, TARE_FORMAT, "its header makes an array of %llu bytes, the archive %llu",
                      (unsigned long long)bytes, (unsigned long long)m->plain);
    mem_free(head);
    return s;
}

/* Before memory is taken for a deflated member its header is looked at (check_header()): a small file can
 * claim any size. The checksum is compared before the bytes are read as an array. */
static tare_status read_member(const struct zip *z, const struct member *m, struct tensor *t, tare_error *err)
{
    const uint8_t *data = NULL;
    uint8_t *plain = NULL;
    tare_status s = locate(z, m, &data, err);
    if (s == TARE_OK && m->method == DEFLATED) s = check_header(m, data, err);
    if (s == TARE_OK && m->method == DEFLATED) {
        plain = mem_new((size_t)m->plain, 1);
        s = plain ? inflate_member(m, data, plain, m->plain, err)
                  : error_set(err, TARE_NOMEM, "out of memory");
        data = plain;
    }
    if (s == TARE_OK && crc_of(data, m->plain) != m->crc)
        s = error_set(err, TARE_FORMAT, "its checksum is wrong");
    if (s < 0) {
        mem_free(plain);
        return error_wrap(err, "%s: member '%.200s'", z->name, m->name);
    }
    s = tensor_read_npy(t, m->name, data, (size_t)m->plain, err);
    mem_free(plain);
    return s < 0 ? error_wrap(err, "%s: member", z->name) : TARE_OK;
}

/* Before anything is inflated: how much would it be? */
static tare_status check_total(const struct zip *z, tare_error *err)
{
    uint64_t at = z->directory, inflated = 0;
    for (uint64_t i = 0; i < z->members; i++) {
        struct member m;
        bool skip;
        tare_status s = read_entry(z, &at, &m, &skip, err);
        if (s < 0) return s;
        if (i == MEMBERS_MAX)
            return error_set(err, TARE_INVALID, "%s: more than %d arrays", z->name, MEMBERS_MAX);
        if (skip || m.method != DEFLATED) continue;
        if (m.plain / GROWTH_MAX > m.packed) continue; /* a lie, told apart by locate() */
        if (m.plain > INFLATED_MAX - inflated)
            return error_set(
                err, TARE_INVALID,
                "%s: its compressed arrays make more than %llu MiB; save larger ones uncompressed "
                "(numpy.savez)",
                z->name, (unsigned long long)(INFLATED_MAX >> 20));
        inflated += m.plain;
    }
    return TARE_OK;
}

/* Two arrays of one name are refused: inputs are matched by name, and either could be meant. */
static tare_status read_members(const struct zip *z, struct tensor_set *set, tare_error *err)
{
    uint64_t at = z->directory;
    for (uint64_t i = 0; i < z->members; i++) {
        struct member m;
        struct tensor t = {0};
        bool skip;
        tare_status s = read_entry(z, &at, &m, &skip, err);
        if (s < 0) return s;
        if (skip) continue;
        if (tensor_find(set, m.name))
            return error_set(err, TARE_FORMAT, "%s: two members are called '%.200s'", z->name, m.name);
        s = read_member(z, &m, &t, err);
        if (s == TARE_OK) s = tensor_set_take(set, &t, err);
        if (s < 0) return s;
    }
    return TARE_OK;
}

tare_status tensor_read_npz(struct tensor_set *out, const char *name, const void *bytes, size_t n,
                            tare_error *err)
{
    struct zip z = {.name = name, .bytes = bytes, .size = n};
    struct tensor_set set = TENSOR_SET_INIT;
    tare_error local = TARE_ERROR_INIT;
    tare_error *e = err ? err : &local; /* error_wrap() needs one */
    tare_status s = read_end(&z, e);
    if (s == TARE_OK) s = check_total(&z, e);
    if (s == TARE_OK) s = read_members(&z, &set, e);
    for (size_t i = 0; s == TARE_OK && i < set.items.n; i++) {
        s = vec_push(&out->items, set.items.items[i], e);
        if (s < 0) break;
        set.items.items[i] = (struct tensor){0};
    }
    tensor_set_release(&set);
    return s;
}

/* SPDX-License-Identifier: MIT
 * test_stored.c - stored files: every codec gives back what went in, and each kind of damage is told by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/crc.h"
#include "core/mem.h"
#include "core/stored.h"

enum { RAW = 1000, ROOM = 2048 };

struct made {
    unsigned char raw[RAW], file[ROOM];
    size_t n;
};

static struct codec_bytes whole(const struct made *m)
{
    return (struct codec_bytes){m->file, m->n};
}

/* A file of RAW bytes; false: that codec is not on this machine. */
static bool make(struct made *m, const char *codec)
{
    tare_error err = TARE_ERROR_INIT;
    struct stored_head head;
    size_t n = RAW;
    unsigned char *body = m->file + sizeof head;
    for (size_t i = 0; i < RAW; i++) m->raw[i] = (unsigned char)(i / 64);
    if (strcmp(codec, "none") == 0) {
        memcpy(body, m->raw, RAW);
    } else {
        const struct codec *c = codec_find(codec, &err);
        if (!c) return false;
        n = ROOM - sizeof head;
        assert_true(codec_bound(c, RAW) <= n);
        assert_int_equal(codec_pack(c, 1, (struct codec_bytes){m->raw, RAW}, body, &n), TARE_OK);
        assert_true(n < RAW);
    }
    assert_int_equal(stored_head_make(&head, codec, "bytes", &(struct codec_bytes){m->raw, RAW},
                                      &(struct codec_bytes){body, n}),
                     TARE_OK);
    memcpy(m->file, &head, sizeof head);
    m->n = sizeof head + n;
    return true;
}

static tare_status load(const struct codec_bytes *file, void *to, tare_error *err)
{
    struct stored_head head;
    tare_status s = stored_read(file, "f", &head, err);
    if (s == TARE_OK) assert_int_equal(head.raw, RAW);
    return s < 0 ? s : stored_unpack(file, "f", &head, to, err);
}

/* The head says what it likes, with the right sums. */
static void resum(struct made *m, const struct stored_head *head)
{
    struct stored_head h = *head;
    h.sum = crc32c(0, &h, offsetof(struct stored_head, sum));
    memcpy(m->file, &h, sizeof h);
}

static void every_codec_gives_it_back(void **state)
{
    (void)state;
    static const char *const codecs[] = {"none", "zstd", "lz4", "zlib"};
    struct made m;
    for (size_t i = 0; i < 4; i++) {
        unsigned char out[RAW] = {0};
        tare_error err = TARE_ERROR_INIT;
        if (!make(&m, codecs[i])) continue;
        struct codec_bytes file = whole(&m);
        assert_int_equal(load(&file, out, &err), TARE_OK);
        assert_memory_equal(out, m.raw, RAW);
    }
}

/* Any bit, any length but the right one. */
static void damage_is_found_wherever_it_is(void **state)
{
    (void)state;
    static const char *const codecs[] = {"none", "zstd", "lz4", "zlib"};
    struct made m;
    for (size_t i = 0; i < 4; i++) {
        unsigned char out[RAW];
        if (!make(&m, codecs[i])) continue;
        for (size_t bit = 0; bit < 8 * m.n; bit += bit < 64 * 8 ? 1 : 13) {
            tare_error err = TARE_ERROR_INIT;
            struct codec_bytes file = whole(&m);
            m.file[bit / 8] ^= (unsigned char)(1u << bit % 8);
            assert_int_equal(load(&file, out, &err), TARE_FORMAT);
            assert_memory_equal(err.text, "f: ", 3);
            m.file[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        for (size_t n = 0; n < m.n; n++) {
            struct codec_bytes cut = {m.file, n};
            assert_int_equal(load(&cut, out, NULL), TARE_FORMAT);
        }
        struct codec_bytes longer = {m.file, m.n + 1};
        assert_int_equal(load(&longer, out, NULL), TARE_FORMAT);
    }
}

static void texts(void **state)
{
    (void)state;
    struct made m;
    struct stored_head head, other;
    unsigned char out[2 * RAW];
    assert_true(make(&m, "none"));
    memcpy(&head, m.file, sizeof head);
    const struct {
        const char *codec, *text;
        uint32_t version;
        uint64_t raw, packed;
        uint32_t raw_sum;
    } cases[] = {
        {"none", "f: was written as version 7, this tare reads version 1", 7, RAW, RAW, head.raw_sum},
        {"none", "f: has 1000 bytes of data, 1001 were written: it is cut or was added to", 1, RAW, RAW + 1,
         head.raw_sum},
        {"none", "f: its data is damaged (checksum)", 1, 2 * RAW, RAW, head.raw_sum},
        {"none", "f: its data is damaged (checksum)", 1, RAW, RAW, head.raw_sum + 1},
        {"rar", "f: is packed with 'rar' is no codec: zstd, lz4 and zlib are", 1, RAW, RAW, head.raw_sum},
        {"longname", "f: is packed with 'longname' is no codec: zstd, lz4 and zlib are", 1, RAW, RAW,
         head.raw_sum},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tare_error err = TARE_ERROR_INIT;
        struct stored_head h = head;
        struct codec_bytes file = whole(&m);
        memset(h.codec, 0, sizeof h.codec);
        memcpy(h.codec, cases[i].codec, strlen(cases[i].codec));
        h.version = cases[i].version, h.raw = cases[i].raw, h.packed = cases[i].packed;
        h.raw_sum = cases[i].raw_sum;
        resum(&m, &h);
        tare_status s = stored_read(&file, "f", &other, &err);
        if (s == TARE_OK) s = stored_unpack(&file, "f", &other, out, &err);
        assert_int_equal(s, TARE_FORMAT);
        assert_string_equal(err.text, cases[i].text);
    }
}

static void words_that_do_not_fit(void **state)
{
    (void)state;
    struct stored_head head;
    struct codec_bytes none = {"", 0};
    assert_int_equal(stored_head_make(&head, "ninechars", "bytes", &none, &none), TARE_INVALID);
    assert_int_equal(stored_head_make(&head, "none", "ninechars", &none, &none), TARE_INVALID);
    assert_int_equal(stored_head_make(&head, "eightchr", "eightchr", &none, &none), TARE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_codec_gives_it_back),
        cmocka_unit_test(damage_is_found_wherever_it_is),
        cmocka_unit_test(texts),
        cmocka_unit_test(words_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

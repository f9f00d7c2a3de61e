/* SPDX-License-Identifier: MIT
 * fuzz_comparison.c - comparison_read() and the reports on any bytes, and the splitting of command lines and workers'
 * specifications. A document that is read must be written and read again the same, and shown without a crash. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/ab.h"
#include "cli/shell_words.h"
#include "core/mem.h"
#include "report/compare/comparison_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

static void read_texts(const char *text)
{
    struct arena a = ARENA_INIT;
    struct ab_spec spec;
    char **words;
    size_t n;
    ab_spec_read(&spec, &a, text, NULL);
    if (words_split(&a, text, &words, &n, NULL) == TARE_OK) must(words[n] == NULL);
    arena_release(&a);
}

static void show(const struct comparison *c)
{
    for (const struct comparison_format *f = comparison_formats; f->name; f++) {
        struct buf out = BUF_INIT;
        struct stream s;
        stream_init(&s, sink_to_buf(&out), NULL);
        f->write(&s, c);
        must(stream_finish(&s) == TARE_OK);
        buf_release(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct comparison c, again;
    struct buf first = BUF_INIT, second = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    char *text = mem_strndup((const char *)data, size);
    if (text) read_texts(text);
    mem_free(text);
    if (comparison_read(&c, "fuzz", data, size, &err) < 0) {
        must(err.text[0] != 0);
        return 0;
    }
    must(comparison_write(&c, &first, &err) == TARE_OK);
    must(comparison_read(&again, "again", first.data, first.len, &err) == TARE_OK);
    must(comparison_write(&again, &second, &err) == TARE_OK);
    must(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    show(&c);
    comparison_release(&again);
    comparison_release(&c);
    buf_release(&first);
    buf_release(&second);
    return 0;
}

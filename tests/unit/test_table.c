/* SPDX-License-Identifier: MIT
 * Tables on terminals that are too narrow: names are shortened in the middle, then columns left out, which is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/mem.h"
#include "report/table.h"

static const struct table_column columns[] = {
    {"layer", true}, {"time", false}, {"rate", false}, {"load", false}, {"", true}};
static const char *const spare[] = {"load", "absent", "rate", NULL};

static void fill(struct table *t, bool words)
{
    static const char *const rows[][5] = {
        {"encoder.layer.0.attention.output.dense", "10 ms", "1.5/s", "3 ms", "sees changes from 9.8 % on"},
        {"\xc3\xa9\xc3\xa9\xc3\xa9", "9 ms", "20/s", "-", ""},
    };
    table_init(t, columns, 5);
    t->spare = spare;
    t->words = words;
    for (size_t i = 0; i < 2; i++)
        for (size_t c = 0; c < 5; c++) buf_add_str(table_cell(t), rows[i][c]);
}

static void expect(unsigned width, bool words, const char *text)
{
    struct buf out = BUF_INIT;
    struct stream s;
    struct table t;
    tare_error err = TARE_ERROR_INIT;
    stream_init(&s, sink_to_buf(&out), &err);
    s.style.width = width;
    fill(&t, words);
    assert_true(table_end(&t, &s, ""));
    assert_int_equal(stream_finish(&s), TARE_OK);
    assert_string_equal(out.data, text);
    buf_release(&out);
}

static void as_long_as_it_is(void **state)
{
    (void)state;
    static const char whole[] =
        "layer                                    time   rate  load  \n"
        "encoder.layer.0.attention.output.dense  10 ms  1.5/s  3 ms  sees changes from 9.8 % on\n"
        "\xc3\xa9\xc3\xa9\xc3\xa9                                      9 ms   20/s     -  \n";
    expect(0, false, whole);
    expect(86, false, whole);
}

static void columns_go_then_names_are_shortened(void **state)
{
    (void)state;
    expect(62, false,
           "layer                         time  \n"
           "encoder.layer..output.dense  10 ms  sees changes from 9.8 % on\n"
           "\xc3\xa9\xc3\xa9\xc3\xa9                           9 ms  \n"
           "not shown here, --wide does: rate, load\n");
}

static void sentences_go_below(void **state)
{
    (void)state;
    expect(56, true,
           "layer                                    time   rate\n"
           "encoder.layer.0.attention.output.dense  10 ms  1.5/s\n"
           "    sees changes from 9.8 % on\n"
           "\xc3\xa9\xc3\xa9\xc3\xa9                                      9 ms   20/s\n"
           "not shown here, --wide does: load\n");
}

static void no_memory(void **state)
{
    (void)state;
    size_t live = mem_live_blocks();
    for (int n = 0;; n++) {
        struct buf out = BUF_INIT;
        struct stream s;
        struct table t;
        tare_error err = TARE_ERROR_INIT;
        mem_fail_after(n);
        stream_init(&s, sink_to_buf(&out), &err);
        s.style.width = 50;
        fill(&t, true);
        table_end(&t, &s, "");
        tare_status status = stream_finish(&s);
        mem_fail_after(-1);
        buf_release(&out);
        assert_int_equal(mem_live_blocks(), live);
        if (status == TARE_OK) break;
        assert_int_equal(status, TARE_NOMEM);
        assert_true(n < 200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_long_as_it_is),
        cmocka_unit_test(columns_go_then_names_are_shortened),
        cmocka_unit_test(sentences_go_below),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

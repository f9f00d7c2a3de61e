/* SPDX-License-Identifier: MIT
 * Names and numbers for people, and the aligned table. */
#include "core/fmt.h"
#include "report_fixture.h"

#include "report/markup.h"
#include "report/table.h"

static void expect(struct buf *b, const char *text)
{
    assert_string_equal(b->data, text);
    buf_clear(b);
}

/* Digits cut by the doubt made "20 ms" of 24.77 ms, and put a p50 of "3 ms" beside a p95 of "2.725 ms". */
static void numbers_have_three_digits_and_keep_their_order(void **state)
{
    struct buf b = BUF_INIT;
    (void)state;
    static const struct {
        double v;
        const char *time, *number;
    } cases[] = {
        {2.725e6, "2.73 ms", "2,725,000"},
        {24767458, "24.8 ms", "24,767,458"},
        {12.34, "12.3 ns", "12.3"},
        {5, "5 ns", "5.00"},
        {999.99, "1.00 us", "1,000"},
        {13412.3, "13.4 us", "13,412"},
        {-1500, "-1.50 us", "-1,500"},
        {0.123456, "0.12 ns", "0.123"},
        {0, "0 ns", "0"},
        {4.66e-6, "0.00 ns", "0.00000466"}, /* no power of ten, however small or large */
        {-3.32e-5, "-0.00 ns", "-0.0000332"},
        {2e-12, "0.00 ns", "< 0.000000001"},
        {NAN, "-", "-"},
        {INFINITY, "-", "-"},
    };
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        fmt_duration(&b, cases[i].v);
        expect(&b, cases[i].time);
        fmt_number(&b, cases[i].v);
        expect(&b, cases[i].number);
    }
    fmt_number(&b, 3.2e16);
    expect(&b, "32,000,000,000,000,000");
    double before = 0;
    for (double ns = 1.001; ns < 6e10; ns *= 1.0007) { /* what is printed never runs against what is so */
        static const struct {
            const char *unit;
            double ns;
        } units[] = {{" ns", 1}, {" us", 1e3}, {" ms", 1e6}, {" s", 1e9}};
        char *end;
        fmt_duration(&b, ns);
        if (strstr(b.data, " m ")) break;
        double read = strtod(b.data, &end);
        for (size_t u = 0; u < N_ELEMENTS(units); u++)
            if (strcmp(end, units[u].unit) == 0) read *= units[u].ns;
        assert_true(read >= before * (1 - 1e-12) && fabs(read / ns - 1) < 0.0051);
        before = read;
        buf_clear(&b);
    }
    buf_release(&b);
}

static void counts_in_sentences_have_no_exponent(void **state)
{
    (void)state;
    assert_string_equal(show_count(131, "interruption").s, "131 interruptions");
    assert_string_equal(show_count(1, "interruption").s, "1 interruption");
    assert_string_equal(show_count(1234567, "run").s, "1,234,567 runs");
    assert_string_equal(show_percent(1.31).s, "131 %");
    assert_string_equal(show_percent(0.0001).s, "< 0.1 %");
    assert_string_equal(show_percent(-0.0001).s, "0.0 %");
}

/* A factor has no % behind it and no exponent; an interval has one unit. */
static void changes_far_from_one_are_factors(void **state)
{
    static const struct {
        double ratio;
        const char *text;
    } rows[] = {{1.052, "+5.2 %"},     {0.9983, "-0.17 %"},
                {2.93, "+193 %"},      {9.99, "+899 %"},
                {12.34, "12.3x"},      {935.5, "936x"},
                {1070, "1,070x"},      {0.00107, "1/935"},
                {1.06e-5, "1/94,340"}, {2e-12, "1/500,000,000,000"},
                {0.02, "-98.0 %"},     {0, "-100 %"},
                {0.99999, "+0.00 %"},  {NAN, "-"}};
    struct buf b = BUF_INIT;
    (void)state;
    for (size_t i = 0; i < N_ELEMENTS(rows); i++) {
        fmt_change(&b, rows[i].ratio);
        expect(&b, rows[i].text);
    }
    fmt_changes(&b, 1.041, 1.063, " .. ");
    expect(&b, "+4.1 .. +6.3 %");
    fmt_changes(&b, 2.93, 247, " .. ");
    expect(&b, "2.93x .. 247x");
    fmt_changes(&b, 0.0012, 0.5, " to ");
    expect(&b, "1/833 to 0.500x");
    buf_release(&b);
}

static void estimates_below_zero_name_the_limit(void **state)
{
    struct buf b = BUF_INIT;
    (void)state;
    fmt_interval(&b, (struct interval){-5, -20, 10}, 40);
    expect(&b, "< 40 ns");
    fmt_interval(&b, (struct interval){-5, -20, 100}, 40);
    expect(&b, "< 100 ns");
    fmt_interval(&b, (struct interval){-5, -20, -1}, NAN);
    expect(&b, "< 1 ns");
    fmt_interval(&b, (struct interval){NAN, NAN, NAN}, 40);
    expect(&b, "-");
    fmt_interval(&b, (struct interval){4, -26, 34}, 0);
    expect(&b, "< 34 ns");
    fmt_interval(&b, (struct interval){500, 480, 510}, 40);
    expect(&b, "500 ns");
    fmt_interval(&b, (struct interval){26, -4, 56}, 0); /* the doubt is larger than the value */
    expect(&b, "< 56 ns");
    fmt_interval(&b, (struct interval){26, NAN, INFINITY}, 0); /* an open end */
    expect(&b, "26 ns");
    buf_release(&b);
}

static void shares_and_dates(void **state)
{
    struct buf b = BUF_INIT;
    (void)state;
    fmt_share(&b, 0.12345);
    expect(&b, "12.3 %");
    fmt_share(&b, 0.0001);
    expect(&b, "< 0.1 %");
    fmt_share(&b, 0);
    expect(&b, "0.0 %");
    fmt_share(&b, NAN);
    expect(&b, "-");
    fmt_date(&b, UINT64_C(1794721329123000000), false);
    expect(&b, "2026-11-15 05:42:09 UTC");
    fmt_date(&b, UINT64_C(1794721329123000000), true);
    expect(&b, "2026-11-15T05:42:09.123Z");
    buf_release(&b);
}

#define REPLACED "\xEF\xBF\xBD"

static void names_cannot_steer_a_terminal_or_break_a_line(void **state)
{
    struct buf b = BUF_INIT;
    (void)state;
    text_plain(&b, HOSTILE, strlen(HOSTILE));
    expect(&b, "q\"b\\c\\x1b[31m\\n;" REPLACED REPLACED REPLACED REPLACED REPLACED REPLACED " \xe2\x82\xac");
    text_folded(&b, "a;b\nc\td", 7);
    expect(&b, "a\\x3bb\\nc\\td");
    text_plain(&b,
               "x\xe2\x80\xae"
               "y\xc2\x9b",
               6 + 1); /* a right-to-left override, a C1 control */
    expect(&b, "x\\u202ey\\x9b");
    text_plain(&b, "\ufeffa\U000e0041", 8); /* what is not seen at all */
    expect(&b, "\\ufeffa\\U000e0041");
    buf_release(&b);
}

/* Units and metric names of a document became titles and cells as they were. */
static void no_cell_and_no_title_can_steer_a_terminal(void **state)
{
    (void)state;
    struct table t;
    struct stream s;
    struct buf got = BUF_INIT;
    const struct table_column columns[] = {{"x\033]0;PWNED\a", true}, {"n\n", false}};
    stream_init(&s, sink_to_buf(&got), NULL);
    table_init(&t, columns, 2);
    buf_add_str(table_cell(&t), "a\033[31m\nb");
    buf_add_str(table_cell(&t), "\u202e1");
    s.style = (struct report_style){"<", "", ">", false, "", "", "", 0};
    table_end(&t, &s, s.style.bold);
    assert_int_equal(stream_finish(&s), TARE_OK);
    expect(&got, "<x\\x1b]0;PWNED\\x07      n\\n>\na\\x1b[31m\\nb       \\u202e1\n");
    buf_release(&got);
}

static void csv_texts_are_no_formulas(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"=cmd|'/C calc'!A0", "'=cmd|'/C calc'!A0"},
        {"@SUM(1,2)", "\"'@SUM(1,2)\""},
        {"+1+1", "'+1+1"},
        {"-a", "'-a"},
        {"-1+1|x", "'-1+1|x"},
        {"\uff1d1", "'\uff1d1"},
        {"\t=1", "\\t=1"},
        {"\r=1", "\"\\x0d=1\""},
        {"-1.5", "-1.5"},
        {"+2e-3", "+2e-3"},
        {"-", "-"},
        {"a=b", "a=b"},
    };
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        csv_field(&b, cases[i][0]);
        expect(&b, cases[i][1]);
    }
    csv_number(&b, true, -1.5);
    expect(&b, ",-1.5");
    buf_release(&b);
}

static void clipping_keeps_characters_whole(void **state)
{
    (void)state;
    assert_int_equal(text_clip("abc", 10), 3);
    assert_int_equal(text_clip("abc", 3), 3);
    assert_int_equal(text_clip("abc", 2), 2);
    assert_int_equal(text_clip("a\xe2\x82\xac", 3), 1);
    assert_int_equal(text_clip("a\xe2\x82\xac", 4), 4);
    assert_int_equal(text_clip("\x80\x80\x80\x80\x80\x80\x80\x80", 6), 6);
    assert_int_equal(text_columns("a\xe2\x82\xac", 4), 2);
}

static const struct table_column columns[] = {{"n", false}, {"left", true}, {"name", true}};

static void fill(struct table *t)
{
    static const char *const cells[] = {
        "1", "a", "x", "1000", "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", "y"};
    table_init(t, columns, 3);
    for (size_t i = 0; i < N_ELEMENTS(cells); i++) {
        buf_add_str(table_cell(t), cells[i]);
    }
}

static void tables_align_characters_not_bytes(void **state)
{
    struct buf got = BUF_INIT;
    struct stream s;
    struct table t;
    (void)state;
    stream_init(&s, sink_to_buf(&got), NULL);
    fill(&t);
    s.style = (struct report_style){"<", "", ">", false, "", "", "", 0};
    table_end(&t, &s, s.style.bold);
    assert_int_equal(stream_finish(&s), TARE_OK);
    assert_string_equal(got.data, "<   n  left   name>\n"
                                  "   1  a      x\n"
                                  "1000  \xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac  y\n");
    buf_release(&got);
}

/* A verdict has its colour, and takes no more room for it; a column without a word is not there. */
static void verdicts_are_coloured_and_empty_columns_dropped(void **state)
{
    static const struct table_column heads[] = {{"a", true}, {"empty", false}, {"verdict", true}, {"z", true}};
    static const char *const cells[] = {"x", "-", "regressed", "1", "y", "", "pass", "-"};
    struct buf got = BUF_INIT;
    struct stream s;
    struct table t;
    (void)state;
    stream_init(&s, sink_to_buf(&got), NULL);
    table_init(&t, heads, 4);
    for (size_t i = 0; i < N_ELEMENTS(cells); i++) buf_add_str(table_cell(&t), cells[i]);
    s.style = (struct report_style){"<", "", ">", false, "G", "W", "B", 0};
    table_drop_empty(&t);
    table_end(&t, &s, "");
    assert_int_equal(stream_finish(&s), TARE_OK);
    expect(&got, "a  verdict    z>\nx  Bregressed>  1\ny  Gpass>       -\n");
    table_init(&t, heads, 1);
    buf_add_str(table_cell(&t), "-");
    table_drop_empty(&t); /* nothing would be left: it stays */
    stream_init(&s, sink_to_buf(&got), NULL);
    table_end(&t, &s, "");
    assert_int_equal(stream_finish(&s), TARE_OK);
    expect(&got, "a\n-\n");
    buf_release(&got);
}

static void sentences_are_wrapped_by_words(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    text_wrap(&b, "one two \xe2\x82\xac\xe2\x82\xac four", (struct text_box){2, 4, 12});
    expect(&b, "one two \xe2\x82\xac\xe2\x82\xac\n    four");
    text_wrap(&b, "one a-word-that-is-too-long x", (struct text_box){0, 2, 8});
    expect(&b, "one\n  a-word-that-is-too-long\n  x");
    text_wrap(&b, "never wrapped without a width", (struct text_box){0, 2, 0});
    expect(&b, "never wrapped without a width");
    buf_release(&b);
}

static void tables_survive_every_failed_allocation(void **state)
{
    long before = mem_live_blocks();
    (void)state;
    for (long n = 0;; n++) {
        struct buf got = BUF_INIT;
        struct stream s;
        struct table t;
        tare_error err = TARE_ERROR_INIT;
        stream_init(&s, sink_to_buf(&got), &err);
        mem_fail_after(n);
        fill(&t);
        table_end(&t, &s, "");
        tare_status status = stream_finish(&s);
        mem_fail_after(-1);
        buf_release(&got);
        assert_int_equal(mem_live_blocks(), before);
        if (status == TARE_OK) break;
        assert_int_equal(status, TARE_NOMEM);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_three_digits_and_keep_their_order),
        cmocka_unit_test(counts_in_sentences_have_no_exponent),
        cmocka_unit_test(changes_far_from_one_are_factors),
        cmocka_unit_test(estimates_below_zero_name_the_limit),
        cmocka_unit_test(shares_and_dates),
        cmocka_unit_test(names_cannot_steer_a_terminal_or_break_a_line),
        cmocka_unit_test(no_cell_and_no_title_can_steer_a_terminal),
        cmocka_unit_test(csv_texts_are_no_formulas),
        cmocka_unit_test(clipping_keeps_characters_whole),
        cmocka_unit_test(tables_align_characters_not_bytes),
        cmocka_unit_test(verdicts_are_coloured_and_empty_columns_dropped),
        cmocka_unit_test(sentences_are_wrapped_by_words),
        cmocka_unit_test(tables_survive_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

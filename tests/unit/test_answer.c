/* SPDX-License-Identifier: MIT
 * test_answer.c - one description, two answers: the words and the JSON of the same calls, byte for byte. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/mem.h"
#include "report/answer.h"

static const struct table_column columns[] = {{"id", true}, {"cases", false}};

static void say_row(struct answer *a, const char *id, uint64_t cases)
{
    answer_object(a, NULL);
    answer_str(a, "id", id, "%s", id ? id : "");
    answer_str(a, "hidden", "x", NULL);
    answer_uint(a, "cases", cases, "%" PRIu64, cases);
    answer_object_end(a);
}

static void say_all(struct answer *a)
{
    answer_section(a, "clock", "clock\n");
    answer_f64(a, "tick_ns", 0.5, "  tick %.1f ns\n", 0.5);
    answer_f64(a, "unknown", NAN, "  more %s\n", "unknown");
    answer_object_end(a);
    answer_section(a, "rest", "rest");
    answer_say(a, "  only words\n");
    answer_bool(a, "good", true, "  %s\n", "good");
    answer_int(a, "below", -1, NULL);
    answer_null(a, "nothing", NULL);
    answer_list(a, "tags");
    answer_str(a, NULL, "a", NULL);
    answer_list_end(a);
    answer_object_end(a);
    answer_table(a, "runs", columns, 2);
    say_row(a, "first", 1);
    say_row(a, NULL, 100);
    answer_table_end(a);
    buf_add_str(answer_text(a), "end\n");
}

static tare_status write_all(struct buf *out, bool json, tare_error *err)
{
    struct answer a;
    struct report_style style = {"<b>", "<d>", "<p>", false, "", "", "", 0};
    answer_begin(&a, sink_to_buf(out), json, &style, err);
    say_all(&a);
    return answer_end(&a);
}

static void words_in_order(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    assert_int_equal(write_all(&out, false, NULL), TARE_OK);
    assert_string_equal(out.data, "<b>clock\n<p>  tick 0.5 ns\n  more unknown\n"
                                  "\n<b>rest<p>  only words\n  good\n"
                                  "<b>id     cases<p>\nfirst      1\n-        100\nend\n");
    buf_release(&out);
}

static void json_in_order(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    assert_int_equal(write_all(&out, true, NULL), TARE_OK);
    assert_string_equal(out.data,
                        "{\n  \"clock\": {\n    \"tick_ns\": 0.5,\n    \"unknown\": null\n  },\n"
                        "  \"rest\": {\n    \"good\": true,\n    \"below\": -1,\n    \"nothing\": null,\n"
                        "    \"tags\": [\n      \"a\"\n    ]\n  },\n"
                        "  \"runs\": [\n    {\n      \"id\": \"first\",\n      \"hidden\": \"x\",\n"
                        "      \"cases\": 1\n    },\n    {\n      \"id\": null,\n      \"hidden\": \"x\",\n"
                        "      \"cases\": 100\n    }\n  ]\n}\n");
    buf_release(&out);
}

static void list_outermost(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    struct answer a;
    struct report_style style = REPORT_STYLE_NONE;
    answer_begin(&a, sink_to_buf(&out), true, &style, NULL);
    answer_list(&a, NULL);
    answer_object_flat(&a, NULL);
    answer_uint(&a, "n", 1, NULL);
    answer_object_end(&a);
    answer_list_end(&a);
    assert_int_equal(answer_end(&a), TARE_OK);
    assert_string_equal(out.data, "[\n  {\"n\": 1}\n]\n");
    buf_release(&out);
}

static void empty_table_is_not_shown(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    struct answer a;
    struct report_style style = REPORT_STYLE_NONE;
    answer_begin(&a, sink_to_buf(&out), false, &style, NULL);
    answer_table(&a, "runs", columns, 2);
    answer_table_end(&a);
    answer_say(&a, "none\n");
    assert_int_equal(answer_end(&a), TARE_OK);
    assert_string_equal(out.data, "none\n");
    buf_release(&out);
}

static void no_memory(void **state)
{
    (void)state;
    size_t live = mem_live_blocks();
    for (int json = 0; json < 2; json++) {
        for (int n = 0;; n++) {
            struct buf out = BUF_INIT;
            tare_error err = TARE_ERROR_INIT;
            mem_fail_after(n);
            tare_status s = write_all(&out, json, &err);
            mem_fail_after(-1);
            buf_release(&out);
            assert_int_equal(mem_live_blocks(), live);
            if (s == TARE_OK) break;
            assert_int_equal(s, TARE_NOMEM);
            assert_true(n < 100);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_in_order),           cmocka_unit_test(json_in_order),
        cmocka_unit_test(list_outermost),           cmocka_unit_test(empty_table_is_not_shown),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 * test_json_tree.c - JSON texts as trees: what is taken and refused (fuzz/corpus/json_tree says the same of jansson),
 * depth, doubled keys however many there are, members in any order, no memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/buf.h"
#include "core/json_tree.h"
#include "core/mem.h"

static tare_status reads(const char *text, size_t n)
{
    struct arena arena = ARENA_INIT;
    const struct json_node *root = NULL;
    tare_status s = json_tree_read((struct json_room){&arena, &arena}, text, n, &root);
    assert_true((s == TARE_OK) == (root != NULL));
    arena_release(&arena);
    return s;
}

static void taken_and_refused(void **state)
{
    static const char *const good[] = {
        "{}", "[]", " [1 , 2]\n", "[-9223372036854775808]", "[0.5e-3,1E5]", "{\"\":{\"a\":null}}",
        "[\"\\u00e9\\ud83d\\ude00\"]"};
    static const char *const bad[] = {
        "", "1", "\"a\"", "[1", "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}", "{} {}", "[nul]", "[nan]",
        "[+1]", "[01]", "[1.]", "[.5]", "[1e]", "[-]", "[0x10]", "[9223372036854775808]", "[-9223372036854775809]",
        "[1e400]", "[\"a]", "[\"\\x\"]", "[\"\\u12g4\"]", "[\"\\u0000\"]", "[\"\\ud800\"]", "[\"\\ud800\\u0041\"]",
        "[\"\\udc00\"]", "[\"\t\"]", "[\"\xff\"]", "[\"\xc3\"]", "{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":1,\"\\u0061\":2}",
        "['a']", "[1 2]", "{\"a\":1 \"b\":2}", "\xef\xbb\xbf{}", "[true1]"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (reads(good[i], strlen(good[i])) != TARE_OK) fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (reads(bad[i], strlen(bad[i])) != TARE_FORMAT) fail_msg("taken: %s", bad[i]);
    assert_int_equal(reads("[\"a\0b\"]", 7), TARE_FORMAT);
    assert_int_equal(reads("[]\0", 3), TARE_FORMAT);
    assert_int_equal(reads("[1\0]", 4), TARE_FORMAT);
}

/* The root is the first level, what is in it the second. */
static void as_deep_as_jansson(void **state)
{
    struct buf text = BUF_INIT;
    (void)state;
    for (size_t deep = JSON_TREE_DEPTH - 1; deep <= JSON_TREE_DEPTH + 1; deep++) {
        buf_clear(&text);
        for (size_t i = 0; i < deep; i++) buf_add_char(&text, '[');
        for (size_t i = 0; i < deep; i++) buf_add_char(&text, ']');
        assert_int_equal(reads(text.data, text.len), deep <= JSON_TREE_DEPTH ? TARE_OK : TARE_FORMAT);
    }
    buf_release(&text);
}

static void doubled_however_many(void **state)
{
    static const unsigned counts[] = {2, 31, 32, 33, 1000};
    struct buf text = BUF_INIT;
    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (int doubled = 0; doubled < 2; doubled++) {
            buf_clear(&text);
            for (unsigned i = 0; i < counts[c]; i++)
                buf_printf(&text, "%s\"k%u\":%u", i ? "," : "{", doubled && i + 1 == counts[c] ? 0 : i, i);
            buf_add_char(&text, '}');
            assert_int_equal(reads(text.data, text.len), doubled ? TARE_FORMAT : TARE_OK);
        }
    }
    buf_release(&text);
}

static void members_in_any_order(void **state)
{
    static const char text[] = "{\"a\":1,\"b\":-2.25,\"c\":\"x\\ny\",\"d\":[true,false]}";
    struct arena arena = ARENA_INIT;
    const struct json_node *root = NULL, *hint = NULL;
    (void)state;
    assert_int_equal(json_tree_read((struct json_room){&arena, &arena}, text, sizeof text - 1, &root), TARE_OK);
    assert_int_equal(root->items.n, 4);
    assert_string_equal(json_tree_get(root, "c", &hint)->s, "x\ny");
    assert_int_equal(json_tree_get(root, "d", &hint)->items.n, 2);
    assert_null(hint);
    assert_int_equal(json_tree_get(root, "a", &hint)->i, 1);
    assert_true(json_tree_get(root, "b", &hint)->d == -2.25);
    assert_null(json_tree_get(root, "ab", &hint));
    assert_string_equal(json_tree_get(root, "c", &hint)->s, "x\ny");
    arena_release(&arena);
}

static void no_memory(void **state)
{
    struct buf text = BUF_INIT;
    (void)state;
    for (unsigned i = 0; i < 200; i++) buf_printf(&text, "%s\"k%u\":[%u]", i ? "," : "{", i, i);
    buf_add_char(&text, '}');
    tare_status s = TARE_NOMEM;
    for (long n = 0; s != TARE_OK; n++) {
        long before = mem_live_blocks();
        mem_fail_after(n);
        s = reads(text.data, text.len);
        mem_fail_after(-1);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        assert_int_equal(mem_live_blocks(), before);
        assert_true(n < 100);
    }
    buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken_and_refused),    cmocka_unit_test(as_deep_as_jansson),
        cmocka_unit_test(doubled_however_many), cmocka_unit_test(members_in_any_order),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

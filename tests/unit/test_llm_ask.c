/* SPDX-License-Identifier: MIT
 * test_llm_ask.c - requests made of prompts: the forms of the two addresses, lines that are refused, warm-up that
 * shares no prompt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/mem.h"
#include "load/llm_ask.h"

#define CHAT "http://h:1/v1/chat/completions?x=1"
#define PLAIN "http://h:1/v1/completions"

static char file[64];

static const char *holding(const char *text)
{
    snprintf(file, sizeof file, "/tmp/tare-prompts-%d", (int)getpid());
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return file;
}

/* The body of request `number`, or what is said of it. */
static char *asked(const struct llm_options *o, const char *url, uint64_t number)
{
    struct llm_ask a;
    struct load_request r = {BUF_INIT, BUF_INIT, BUF_INIT};
    tare_error err = TARE_ERROR_INIT;
    tare_status s = llm_ask_open(&a, o, url, &err);
    if (s == TARE_OK) {
        struct load_source source = llm_source(&a);
        s = source.fill(source.ctx, number, &r, &err);
        llm_ask_close(&a);
    }
    if (s < 0) {
        buf_clear(&r.body);
        buf_add_str(&r.body, err.text);
    }
    return buf_take(&r.body);
}

static void is(const struct llm_options *o, const char *url, const char *want)
{
    char *got = asked(o, url, 0);
    if (strcmp(got, want) != 0) fail_msg("%s", got);
    mem_free(got);
}

static void forms(void **state)
{
    struct llm_options o = {.model = "m", .prompts = holding("\"say \\\"hi\\\"\"\n")};
    is(&o, CHAT,
       "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"say \\\"hi\\\"\"}],"
       "\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
    o.output_tokens = 9;
    o.whole = o.exact_output = true;
    is(&o, PLAIN,
       "{\"model\":\"m\",\"prompt\":\"say \\\"hi\\\"\",\"max_tokens\":9,\"min_tokens\":9,\"ignore_eos\":true}");
    o = (struct llm_options){
        .whole = true,
        .prompts =
            holding("\n{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"output_tokens\":5}\r\n")};
    is(&o, CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"max_tokens\":5}");
    (void)state;
}

static void refused(void **state)
{
    static const struct {
        const char *lines, *url, *says;
    } bad[] = {
        {"\"a\"\nwhat\n", CHAT, ": line 2: it is no JSON"},
        {"{\"x\":1}\n", CHAT, ": line 1: no `prompt` (a text) and no `messages` (a list)"},
        {"{\"messages\":[]}\n", PLAIN, ": line 1: no `prompt` (a text)"},
        {"{\"messages\":[7]}\n", CHAT, ": line 1: a message is no object"},
        {"7\n", CHAT, ": line 1: neither a text nor an object"},
        {"\"a\",\"b\"\n", CHAT, ": line 1: it is no JSON"},
        {"\n \n", CHAT, ": only empty lines"},
        {"\"a\"\n", "http://h/predict", "--llm wants an address that ends with"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct llm_options o = {.prompts = holding(bad[i].lines)};
        char *got = asked(&o, bad[i].url, 0);
        if (!strstr(got, bad[i].says)) fail_msg("%s: %s", bad[i].lines, got);
        mem_free(got);
    }
    struct llm_options o = {.prompts = "words:0"};
    char *got = asked(&o, CHAT, 0);
    assert_non_null(strstr(got, "--prompts: line 1, column 1"));
    mem_free(got);
    (void)state;
}

static void warm_up_shares_no_prompt(void **state)
{
    struct llm_options o = {.whole = true, .prompts = holding("\"a\"\n"), .seed = 3};
    char *one = asked(&o, PLAIN, 0), *again = asked(&o, PLAIN, 1), *warm = asked(&o, PLAIN, LOAD_WARM_NUMBER);
    assert_string_equal(one, "{\"prompt\":\"a\"}");
    assert_string_equal(again, one);
    assert_non_null(strstr(warm, "] a\"}"));
    o.cold = true;
    char *cold = asked(&o, PLAIN, 0), *other = asked(&o, PLAIN, 1);
    assert_string_not_equal(cold, other);
    mem_free(one);
    mem_free(again);
    mem_free(warm);
    mem_free(cold);
    mem_free(other);
    (void)state;
}

static unsigned words_of(const char *text)
{
    unsigned n = 1;
    for (; *text; text++) n += *text == ' ';
    return n;
}

static void made_of_words(void **state)
{
    struct llm_options o = {.whole = true, .prompts = "words:20..40", .seed = 3};
    unsigned least = 99, most = 0;
    for (uint64_t i = 0; i < 60; i++) {
        char *got = asked(&o, PLAIN, i);
        unsigned n = words_of(got);
        if (n < least) least = n;
        if (n > most) most = n;
        mem_free(got);
    }
    assert_true(least >= 20 && least < 24 && most <= 40 && most > 36);
    o.prefix_words = 100;
    char *a = asked(&o, PLAIN, 1), *b = asked(&o, PLAIN, 2);
    assert_true(strncmp(a, b, 300) == 0 && strcmp(a, b) != 0);
    mem_free(a);
    mem_free(b);
    (void)state;
}

static void without_memory(void **state)
{
    struct llm_options o = {.model = "m",
                            .prefix_words = 2,
                            .prompts = holding("{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}\n")};
    for (long n = 0;; n++) {
        struct llm_ask a;
        struct load_request r = {BUF_INIT, BUF_INIT, BUF_INIT};
        mem_fail_after(n);
        tare_status s = llm_ask_open(&a, &o, CHAT, NULL);
        if (s == TARE_OK) {
            struct load_source source = llm_source(&a);
            s = source.fill(source.ctx, 1, &r, NULL);
            llm_ask_close(&a);
        }
        mem_fail_after(-1);
        bool whole = r.body.len && !r.body.failed;
        buf_release(&r.body);
        assert_int_equal(mem_live_blocks(), 0);
        if (s == TARE_OK) {
            assert_true(whole);
            break;
        }
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 300);
    }
    unlink(file);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms),         cmocka_unit_test(refused),        cmocka_unit_test(warm_up_shares_no_prompt),
        cmocka_unit_test(made_of_words), cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 * test_openai.c - what events of OpenAI-compatible servers say, as they send them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "load/openai.h"

static void said(const char *json, char *out, size_t room)
{
    struct openai_said s;
    bool good = openai_read(json, strlen(json), &s);
    int n = snprintf(out, room, "%s%s%s%s%s%s", good ? "" : "bad ", s.text ? "text " : "",
                     s.reasoning ? "reasoning " : "", s.tool ? "tool " : "", s.finished ? "finished " : "",
                     s.error ? "error " : "");
    if (s.usage)
        n += snprintf(out + n, room - (size_t)n, "%u/%u/%u/%u ", s.tokens_in, s.tokens_out, s.tokens_cached,
                      s.tokens_reasoning);
    snprintf(out + n, room - (size_t)n, "%s", s.error_text);
}

static void as_servers_send_them(void **state)
{
    static const struct {
        const char *json, *says;
    } cases[] = {
        {"{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}",
         ""},
        {"{\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}", "text "},
        {" {\"choices\" : [ { \"delta\" : { \"content\" : \"\\\"\" } } ] }\n", "text "},
        {"{\"choices\":[{\"delta\":{\"content\":null,\"reasoning_content\":\"hm\"}}]}", "reasoning "},
        {"{\"choices\":[{\"delta\":{\"reasoning\":\"hm\",\"content\":\"\"}}]}", "reasoning "},
        {"{\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"{\\\"a\\\"\"}}]}}]}",
         "tool "},
        {"{\"choices\":[{\"delta\":{\"tool_calls\":[]}}]}", ""},
        {"{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}", "finished "},
        {"{\"choices\":[{\"text\":\" word\",\"logprobs\":null,\"finish_reason\":\"length\"}]}",
         "text finished "},
        {"{\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":50,\"total_tokens\":62,"
         "\"prompt_tokens_details\":{\"cached_tokens\":8},\"completion_tokens_details\":{\"reasoning_tokens\":3}}}",
         "12/50/8/3 "},
        {"{\"choices\":[],\"usage\":null}", ""},
        {"{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"all\"}}],\"usage\":{\"prompt_tokens\":1}}",
         "text 1/0/0/0 "},
        {"{\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"all\"}]}}]}", "text "},
        {"{\"error\":{\"message\":\"out of \\\"blocks\\\"\",\"code\":500}}", "error out of \\\"blocks\\\""},
        {"{\"error\":\"overloaded\"}", "error overloaded"},
        {"{\"error\":null}", ""},
        /* the same names elsewhere mean nothing */
        {"{\"x\":{\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]},\"content\":\"a\",\"usage\":7}", ""},
        {"{\"choices\":[{\"delta\":{\"x\":{\"content\":\"Hi\"}},\"logprobs\":{\"content\":[{\"token\":\"a\"}]}}]}",
         ""},
        {"{\"choices\":[{\"delta\":{\"content\":\"\\\",\\\"error\\\":{}\"}}]}", "text "},
        {"{}", ""},
        {"{\"a\":[[],{},[{}]],\"b\":{\"c\":-1.5e3}}", ""},
        {"{\"usage\":{\"prompt_tokens\":1.5,\"completion_tokens\":99999999999}}", "0/0/0/0 "},
        /* no JSON */
        {"", "bad "},
        {"[]", "bad "},
        {"[DONE]", "bad "},
        {"{\"a\":1", "bad "},
        {"{\"a\":1}}", "bad "},
        {"{\"a\":1]", "bad "},
        {"{\"a\" 1}", "bad "},
        {"{\"a\":1,}", "bad "},
        {"{\"a\":tru}", "bad "},
        {"{\"a\":\"x}", "bad "},
        {"{\"a\":\"x\n\"}", "bad "},
        {"{a:1}", "bad "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        said(cases[i].json, text, sizeof text);
        if (strcmp(text, cases[i].says) != 0) fail_msg("%s: '%s'", cases[i].json, text);
    }
    (void)state;
}

static void depth_has_an_end(void **state)
{
    char text[400] = "{\"a\":";
    struct openai_said s;
    memset(text + 5, '[', 300);
    assert_false(openai_read(text, strlen(text), &s));
    (void)state;
}

/* What is cut short is no JSON, and nothing behind it is looked at. */
static void cut_anywhere(void **state)
{
    static const char text[] =
        "{\"choices\":[{\"delta\":{\"content\":\"\\u00e4\\\\\"}}],\"usage\":{\"prompt_tokens\":12}}";
    struct openai_said s;
    for (size_t n = 0; n < sizeof text - 1; n++) assert_false(openai_read(text, n, &s));
    assert_true(openai_read(text, sizeof text - 1, &s));
    assert_true(s.text && s.tokens_in == 12);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_servers_send_them),
        cmocka_unit_test(depth_has_an_end),
        cmocka_unit_test(cut_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

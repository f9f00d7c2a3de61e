/* SPDX-License-Identifier: MIT
 * bench_llm.c - what `tare bench http://.. --llm` and `--kserve` have of their own: options, what is asked, how answers
 * are read. */
#include <string.h>

#include "cli/bench/bench_args.h"

/* clang-format off */
struct opt *bench_llm_rows(struct bench_args *a, struct opt *to)
{
    struct llm_args *m = &a->llm;
    const struct opt rows[] = {
        OPT_GROUP("Language models and KServe"),
        OPT_FLAG(0, "llm", &m->on, "the service speaks OpenAI's chat/completions or completions: times to tokens",
                 .only_for = KIND_SERVICE, .not_with = "body inputs template kserve expect-json"),
        OPT_STRING(0, "model", &m->model, "<name>", "the model to ask for", .only_for = KIND_SERVICE, .needs = "llm"),
        OPT_STRING(0, "prompts", &m->prompts, "<file|words:n>",
                 "lines of JSON: texts, or objects with prompt or messages; or made-up words, words:20..80 "
                 "(default words:100)",
                 .only_for = KIND_SERVICE, .needs = "llm"),
        OPT_UINT_IN(0, "prefix-words", &m->prefix_words, 1, 1000000, "made-up words in front that all prompts share",
                 .only_for = KIND_SERVICE, .needs = "llm", .flags = OPT_NO_DEFAULT),
        OPT_FLAG(0, "cold", &m->cold, "each prompt begins with words of its own: none is in the server's cache",
                 .only_for = KIND_SERVICE, .needs = "llm"),
        OPT_UINT_IN(0, "output-tokens", &m->output_tokens, 1, 10000000,
                 "at most so many in an answer (default: the server's own)",
                 .only_for = KIND_SERVICE, .needs = "llm", .flags = OPT_NO_DEFAULT),
        OPT_FLAG(0, "exact-output", &m->exact, "exactly --output-tokens: ignore_eos, which vLLM and SGLang know",
                 .only_for = KIND_SERVICE, .needs = "output-tokens"),
        OPT_FLAG(0, "whole", &m->whole, "answers as a whole, not streamed", .only_for = KIND_SERVICE, .needs = "llm"),
        OPT_STRING(0, "slo", &m->slo, "<limits>",
                 "what a good request keeps: ttft<=500ms,tpot<=50ms; also latency, ttft_answer, gap_max; with "
                 "--find-rate also of all: p99<=200ms,ttft.p95<=1s,goodput>=95%",
                 .only_for = KIND_SERVICE, .needs = "llm find-rate"),
        OPT_FLAG(0, "kserve", &m->kserve, "the service speaks KServe v2; --inputs are tensors, sent as JSON",
                 .only_for = KIND_SERVICE, .needs = "inputs", .not_with = "body"),
        OPT_FLAG(0, "binary", &m->binary, "tensors as bytes behind the JSON", .only_for = KIND_SERVICE,
                 .needs = "kserve"),
        OPT_END,
    };
    return opt_append(to, rows);
}
/* clang-format on */

/* 0, or the exit code after the user was told. */
int bench_protocol_plan(struct cli *cli, const struct bench_args *a, struct bench_protocol *out,
                        struct asking *to)
{
    const struct llm_args *m = &a->llm;
    const struct llm_options o = {.model = m->model,
                                  .prompts = m->prompts,
                                  .prefix_words = m->prefix_words,
                                  .output_tokens = m->output_tokens,
                                  .exact_output = m->exact,
                                  .cold = m->cold,
                                  .whole = m->whole,
                                  .seed = a->seed};
    if (m->slo && !a->http.find_rate && slo_parse(&out->slo, m->slo, &cli->error) < 0)
        return cli_usage_error(cli, "%s", cli->error.text);
    if (m->on && llm_ask_open(&out->ask, &o, a->url, &cli->error) < 0)
        return cli_usage_error(cli, "%s", cli->error.text);
    out->opened = m->on;
    if (m->on) to->reader = llm_reader(&out->pool);
    if (m->on) to->source = llm_source(&out->ask);
    if (m->kserve && kserve_load_open(&out->kserve, a->setup.inputs, m->binary, &cli->error) < 0)
        return cli_usage_error(cli, "--inputs %s", cli->error.text);
    if (m->kserve) to->reader = kserve_reader(&out->kserve);
    if (m->kserve) to->source = kserve_source(&out->kserve);
    return 0;
}

void bench_protocol_release(struct bench_protocol *q)
{
    if (q->opened) llm_ask_close(&q->ask);
    llm_pool_release(&q->pool);
    kserve_load_close(&q->kserve);
}

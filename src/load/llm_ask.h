/* SPDX-License-Identifier: MIT
 * llm_ask.h - what a language model is asked: requests of the OpenAI form made of prompts. A line of the file of
 * prompts is a text in quotes, or an object with `prompt` or `messages`, and maybe `output_tokens`. Requests of the
 * warm-up begin with words of their own, so that no server has a measured prompt in its cache; with `cold` all do. */
#ifndef LOAD_LLM_ASK_H
#define LOAD_LLM_ASK_H

#include "load/lines.h"
#include "load/source.h"
#include "load/template.h"

struct llm_options {
    const char *model;   /* NULL: the server has but one */
    const char *prompts; /* a file, or words:50 or words:20..80 for so many made-up words; NULL: words:100 */
    uint64_t prefix_words;  /* that all prompts have in common, in front; 0: none */
    uint64_t output_tokens; /* at most, where a line does not say; 0: the server's own */
    bool exact_output;      /* exactly so many: ignore_eos and min_tokens, which vLLM and SGLang know */
    bool cold, whole;       /* whole: not streamed */
    uint64_t seed;
};

struct llm_ask {
    struct llm_options options;
    bool chat;
    struct lines lines;
    struct template *made; /* of words; NULL: lines */
    struct buf prefix, scratch;
};
/* `url` tells the form: a path that ends with chat/completions, or with completions. */
tare_status llm_ask_open(struct llm_ask *a, const struct llm_options *o, const char *url, tare_error *err);
void llm_ask_close(struct llm_ask *a);
struct load_source llm_source(struct llm_ask *a);

#endif

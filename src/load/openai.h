/* SPDX-License-Identifier: MIT
 * openai.h - what an event of an OpenAI-compatible stream says, or a whole answer: is there text, reasoning, a tool
 * call; what the server counted; an error. One pass over the JSON, nothing built, nothing allocated: it stands in the
 * way of every event that is timed. Pure. */
#ifndef LOAD_OPENAI_H
#define LOAD_OPENAI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct openai_said {
    bool text, reasoning, tool; /* of it there is something, not the empty text that comes with a role */
    bool finished;              /* a reason to finish is given */
    bool error;
    bool usage; /* then: */
    uint32_t tokens_in, tokens_out, tokens_cached, tokens_reasoning;
    char error_text[160]; /* as JSON has it, escapes and all; "": none given */
};

/* False: it is no JSON object; then `out` holds what was read until there. */
bool openai_read(const char *json, size_t n, struct openai_said *out);

#endif

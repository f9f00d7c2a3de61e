/* SPDX-License-Identifier: MIT
 * outcome.c - see outcome.h. Apart from the engine: who only reads documents of requests needs no network. */
#include "load/outcome.h"

static const struct {
    const char *word, *help;
} words[LOAD_FAULTS] = {
#define X(name, text, help) [LOAD_##name] = {text, help},
    LOAD_FAULT_MAP(X)
#undef X
};

const char *load_fault_word(unsigned fault)
{
    return fault < LOAD_FAULTS ? words[fault].word : "unknown";
}

const char *load_fault_help(unsigned fault)
{
    return fault < LOAD_FAULTS ? words[fault].help : "unknown";
}

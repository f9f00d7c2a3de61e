/* SPDX-License-Identifier: MIT
 * fuzz_tune.c - any bytes as what an earlier search was told, line by line, and as what a Python process found of a
 * data loader: read in full or refused. What is read is written and read again the same, and told to a search. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/tune/told.h"
#include "cli/tune/loader_answer.h"
#include "core/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct tune_knob knobs[] = {
    {"batch", 7, true, true}, {"threads", 3, true, false}, {"arena", 2, false, false}};
static const struct tune_space space = {.knobs = knobs, .n = 3};

static void must(bool ok)
{
    if (!ok) abort();
}

static bool is_same(const struct tune_answer *a, const struct tune_answer *b)
{
    return a->outcome == b->outcome && a->cost == b->cost;
}

static void tell(struct tune_search *search, const char *line)
{
    struct tune_block block = {.n = 1};
    struct tune_answer answer, again;
    struct tune_point at;
    char text[TOLD_TEXT_MAX];
    if (!told_read(&space, line, &block.at[0], &answer)) return;
    told_write(&space, &block.at[0], &answer, text);
    must(told_read(&space, text, &at, &again));
    must(memcmp(&at, &block.at[0], sizeof at) == 0 && is_same(&answer, &again));
    if (tune_search_tell(search, &block, &answer, NULL) < 0) return;
    struct tune_tried *tried = NULL;
    size_t n = 0, best = 0;
    must(tune_search_tried(search, &tried, &n, &best, NULL) == TARE_OK);
    must(n > 0 && best < n);
    mem_free(tried);
}

static void tell_lines(char *text)
{
    struct tune_search *search = NULL;
    const struct tune_limits limits = {.most = 12, .equal = 0.01, .seed = 1};
    if (tune_search_new(&search, &space, &limits, NULL) < 0) return;
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        tell(search, line);
    }
    tune_search_free(search);
}

static void read_answer(const uint8_t *data, size_t size)
{
    struct arena a = ARENA_INIT;
    struct loader_answer found;
    tare_error err = TARE_ERROR_INIT;
    tare_status s = loader_answer_read(&found, &a, (const char *)data, size, &err);
    must(s <= 0 && err.status == s && (s == TARE_OK || err.text[0]));
    must(s < 0 || found.best == 0 || found.best < found.n);
    must(s < 0 || !found.has_proof || isfinite(found.proof.gain.hi));
    for (size_t i = 0; s == TARE_OK && i < found.n; i++)
        must(found.trials[i].name && (found.trials[i].times.known || found.trials[i].failure));
    arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size);
    read_answer(data, size);
    if (text) tell_lines(text);
    mem_free(text);
    return 0;
}

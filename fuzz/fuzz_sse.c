/* SPDX-License-Identifier: MIT
 * fuzz_sse.c - any bytes as a stream of events, and each event as one of a language model. Cut in pieces, the same
 * events come out as whole. What the scan of an event takes for JSON has the braces of JSON; what the tree reader
 * takes, the scan takes, too, as far as it goes deep. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/json_tree.h"
#include "load/openai.h"
#include "load/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

static void look(void *ctx, const struct sse_event *e)
{
    struct openai_said said;
    struct arena memory = ARENA_INIT;
    const struct json_node *root;
    must(e->data[e->n] == 0 && strlen(e->name) < 24);
    bool good = openai_read(e->data, e->n, &said);
    must(memchr(said.error_text, 0, sizeof said.error_text) != NULL);
    if (good) must(e->n >= 2 && strchr(e->data, '{') && memchr(e->data, '}', e->n));
    if (!good && e->n < 60 &&
        json_tree_read((struct json_room){&memory, &memory}, e->data, e->n, &root) == TARE_OK)
        must(root->kind != TREE_OBJECT);
    arena_release(&memory);
    buf_printf(ctx, "<%s %zu%d%d%d>", e->name, e->n, e->cut, good, said.text);
    buf_add(ctx, e->data, e->n);
}

static void feed(struct buf *out, const uint8_t *data, size_t size, size_t step)
{
    struct sse s = SSE_INIT;
    for (size_t at = 0; at < size; at += step)
        sse_feed(&s, (const char *)data + at, size - at < step ? size - at : step,
                 &(struct sse_sink){look, out});
    sse_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole = BUF_INIT, cut = BUF_INIT;
    if (size < 2) return 0;
    feed(&whole, data + 1, size - 1, size);
    feed(&cut, data + 1, size - 1, 1 + data[0] % 32);
    must(whole.len == cut.len && memcmp(whole.data, cut.data, whole.len) == 0);
    buf_release(&whole);
    buf_release(&cut);
    return 0;
}

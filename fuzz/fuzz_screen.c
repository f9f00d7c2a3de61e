/* SPDX-License-Identifier: MIT
 * fuzz_screen.c - what processes, kernels and terminals can put before `tare top`: the line of /proc/PID/stat, any
 * bytes as text on a screen, and as keys. Whatever they are, what is written to the terminal is our own sequences and
 * printable characters. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/str.h"
#include "probe/procfs.h"
#include "top/screen.h"
#include "top/top_term.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) abort();
}

static void check_stat(const char *text, size_t n)
{
    struct process_stat st;
    if (!process_stat_parse(&st, text)) return;
    must(st.name >= text && st.name + st.name_len < text + n);
}

/* All of it is taken, key by key. */
static void check_keys(const char *text, size_t n)
{
    for (size_t taken; n > 0; text += taken, n -= taken) {
        must(top_key_parse(text, n, &taken) != TOP_KEY_NONE);
        must(taken > 0 && taken <= n);
    }
}

/* ESC only where a sequence of ours begins; everything else is UTF-8 without controls. */
static void check_bytes(const struct buf *out)
{
    const char *at = out->data, *end = at + out->len;
    while (at < end) {
        uint32_t cp = 0;
        if (*at == '\033') {
            must(at[1] == '[');
            at += 2;
            at += strspn(at, "0123456789;");
            must(strchr("HCKJm", *at) && *at);
            at++;
            continue;
        }
        size_t n = str_decode(at, (size_t)(end - at), &cp);
        must(n > 0 && !str_is_control(cp));
        at += n;
    }
}

static void draw(const char *text, bool utf8)
{
    struct screen s = SCREEN_INIT;
    struct buf out = BUF_INIT;
    s.utf8 = utf8;
    must(screen_resize(&s, 23, 4, NULL) == TARE_OK);
    for (unsigned y = 0; y < 4; y++) {
        struct screen_span at = {y * 5, y, 23 - y * 3};
        must(screen_text(&s, at, SCREEN_WARN, text) <= at.width);
        must(screen_text(&s, at, SCREEN_PLAIN, text) <= screen_columns(text));
        screen_right(&s, (struct screen_span){y, (y + 1) % 4, 7}, SCREEN_BAD, text);
    }
    screen_render(&s, &out);
    check_bytes(&out);
    buf_release(&out);
    screen_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_new(size + 1, 1);
    if (!text) return 0;
    memcpy(text, data, size);
    check_stat(text, size);
    check_keys(text, size);
    draw(text, true);
    draw(text, false);
    mem_free(text);
    return 0;
}

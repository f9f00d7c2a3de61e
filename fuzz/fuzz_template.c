/* SPDX-License-Identifier: MIT
 * fuzz_template.c - any text as a template, up to the first NUL byte, and what follows it as a line of inputs. What is
 * accepted fills the same for the same number, or says why not; what is refused says where. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "load/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = memchr(data, 0, size);
    size_t n = nul ? (size_t)(nul - data) : size;
    struct buf text = BUF_INIT, out = BUF_INIT, again = BUF_INIT;
    struct template *t = NULL;
    tare_error err = TARE_ERROR_INIT;
    buf_add(&text, data, n);
    if (template_new(&t, "t", text, &err) < 0) {
        must(strstr(err.text, "column") != NULL);
        buf_release(&text);
        return 0;
    }
    struct template_facts f = {.id = size, .seed = 3, .line_number = 1};
    if (nul) {
        f.line = (const char *)nul + 1;
        f.n_line = size - n - 1;
    }
    tare_status s = template_fill(t, &f, &out, &err);
    must(s == template_fill(t, &f, &again, NULL));
    if (s < 0) {
        must(err.text[0] && !template_is_fixed(t));
    } else {
        must(out.len == again.len && memcmp(out.data, again.data, out.len) == 0 && out.data[out.len] == 0);
        must(f.line || !template_needs_lines(t));
    }
    template_free(t);
    buf_release(&text);
    buf_release(&out);
    buf_release(&again);
    return 0;
}

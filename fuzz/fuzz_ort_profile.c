/* SPDX-License-Identifier: MIT
 * fuzz_ort_profile.c - ort_profile_read() on any bytes. What is read must make sense: events in order, each in a run
 * that is there, nested in an earlier one, with words and shapes that can be walked. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/onnx/onnx.h"
#include "model/profile/ort_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

static size_t walk_event(const struct ort_profile *p, size_t i)
{
    const struct ort_event *e = &p->events.items[i];
    size_t letters = strlen(e->node) + strlen(e->op) + strlen(e->provider);
    must(e->duration_us >= 0 && e->self_us >= 0 && e->self_us <= e->duration_us);
    must(i == 0 || p->events.items[i - 1].start_us <= e->start_us);
    must(e->parent == SIZE_MAX || e->parent < i);
    must(e->run <= p->runs_us.n);
    must((e->outputs == NULL) == (e->n_outputs == 0));
    for (size_t k = 0; k < e->n_outputs; k++) {
        must(e->outputs[k].type >= 0 && e->outputs[k].type < ONNX_TYPES);
        for (size_t d = 0; d < e->outputs[k].rank; d++) must(e->outputs[k].dims[d] >= 0);
    }
    return letters;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ort_profile p = ORT_PROFILE_INIT;
    tare_error err = TARE_ERROR_INIT;
    static volatile size_t letters; /* read, so that the compiler keeps the reading */
    tare_status s = ort_profile_read(&p, "fuzz", data, size, &err);
    if (s < 0) {
        must(s == TARE_INVALID); /* never for lack of memory */
        must(strncmp(err.text, "fuzz: ", 6) == 0 && p.events.n == 0);
        return 0;
    }
    for (size_t i = 0; i < p.events.n; i++) letters = walk_event(&p, i);
    (void)letters;
    must(p.unreadable <= p.lines);
    ort_profile_release(&p);
    return 0;
}

/* SPDX-License-Identifier: MIT
 * fuzz_inspect.c - inspect_model() on any bytes that read as a model, and all that is found into a document. Whatever
 * the graph is: layers add up to the total, the arena lies between peak and sum, and the document can be written. */
#include <stdint.h>
#include <stdlib.h>

#include "analyze/layers/inspect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

/* What is known of each layer, added up, is the total, unless that does not fit. */
static void layers_add_up(const struct inspected *i)
{
    uint64_t sum = 0;
    struct known_u64 total = inspect_number(i, i->total.macs);
    for (size_t k = 0; k < i->layers.n; k++) {
        struct known_u64 macs = inspect_number(i, i->layers.items[k].cost.macs);
        if (__builtin_add_overflow(sum, macs.known ? macs.v : 0, &sum)) return;
        if (i->layers.items[k].cost.macs && !macs.known) return;
    }
    must(!total.known || total.v == sum);
}

static void record(const struct inspected *i)
{
    struct run run;
    struct buf text = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    must(run_init(&run, "inspect", &err) == TARE_OK);
    run.subject.type = "onnx";
    run.subject.name = "fuzz";
    inspect_record_static(i, &run, &run.subject.as_file);
    struct run_case *c = run_add_case(&run, "fuzz");
    must(c && inspect_record_layers(i, &run, c, &err) == TARE_OK);
    must(run_write(&run, &text, &err) == TARE_OK);
    buf_release(&text);
    run_release(&run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct onnx_model m = ONNX_MODEL_INIT;
    struct inspected i = INSPECTED_INIT;
    const struct inspect_options o = {.n_dims = 0};
    tare_error err = TARE_ERROR_INIT;
    if (onnx_read(&m, "fuzz", data, size, &err) < 0) return 0;
    if (inspect_model(&i, &m, &o, &err) == TARE_OK) {
        must(i.memory.peak <= i.memory.arena && i.memory.arena <= i.memory.sum);
        layers_add_up(&i);
        record(&i);
    } else {
        must(err.text[0] != 0);
    }
    inspected_release(&i);
    onnx_close(&m);
    return 0;
}

/* SPDX-License-Identifier: MIT
 * fuzz_target.c - any text as a target, as a rate, and as JSON lines of expected answers. What is
 * accepted must be a finite value of a known metric; what is refused must say why. The first byte says
 * which. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/judge/accuracy.h"
#include "analyze/judge/judge.h"
#include "core/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

static void as_target(const char *text)
{
    tare_error err = TARE_ERROR_INIT;
    struct target t, again;
    if (target_parse(&t, text, &err) < 0) {
        must(err.text[0] != 0);
        return;
    }
    must(isfinite(t.value) && t.value >= 0 && measure_find(t.metric) != NULL);
    must(memchr(t.metric, 0, sizeof t.metric) && memchr(t.unit, 0, sizeof t.unit));
    must(target_parse(&again, text, &err) == TARE_OK && again.value == t.value && again.op == t.op);
    struct run_case c = {.name = "c", .unit = "texts", .load_ns = known_u64(5)};
    c.throughput.rate = run_estimate(10, 9, 11);
    struct run_target v;
    must(target_judge(&t, &c, &v, &err) == TARE_OK && v.verdict != NULL);
    must(!v.ratio.known || isfinite(v.ratio.v));
}

static void as_rate(const char *text)
{
    tare_error err = TARE_ERROR_INIT;
    double rate = -1;
    char unit[24] = "";
    if (target_parse_rate(&rate, unit, text, &err) < 0)
        must(err.text[0] != 0 && rate == -1);
    else
        must(isfinite(rate) && rate >= 0 && memchr(unit, 0, sizeof unit));
}

/* What a service is to answer may be any JSON. */
static void as_any(const char *text, size_t n)
{
    tare_error err = TARE_ERROR_INIT;
    struct expected e = EXPECTED_INIT;
    struct expected_text from = {"fuzz", text, n};
    if (expected_read_any(&e, &from, &err) < 0) {
        must(err.text[0] != 0 && !e.labels && !e.values && !e.texts);
        return;
    }
    must(e.rows > 0 && !e.labels != !e.values && (!e.texts || (e.values && e.columns == 1)));
    for (size_t i = 0; e.texts && i < e.rows; i++) must(e.texts[i] != NULL && e.values[i] == 1);
    expected_release(&e);
}

static void as_expected(const char *text, size_t n)
{
    as_any(text, n);
    tare_error err = TARE_ERROR_INIT;
    struct expected e = EXPECTED_INIT;
    if (expected_read_jsonl(&e, "fuzz", text, n, &err) < 0) {
        must(err.text[0] != 0 && !e.labels && !e.values);
        return;
    }
    must(e.rows > 0 && !e.labels != !e.values);
    if (e.values)
        for (size_t i = 0; i < e.rows * e.columns; i++) must(isfinite(e.values[i]));
    expected_release(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    char *text = malloc(size);
    if (!text) return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    long before = mem_live_blocks();
    switch (data[0]) {
    case 'r': as_rate(text); break;
    case 'e': as_expected(text, size - 1); break;
    default: as_target(text);
    }
    must(mem_live_blocks() == before);
    free(text);
    return 0;
}

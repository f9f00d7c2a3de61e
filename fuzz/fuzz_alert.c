/* SPDX-License-Identifier: MIT
 * fuzz_alert.c - any text as an alert rule. What is accepted speaks of a known quantity, has finite values, clears on
 * the near side of its threshold, and reads the same again; what is refused says why. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/watch/alert.h"
#include "core/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok) abort();
}

static void is_sound(const struct alert_condition *c)
{
    must(c->op == '>' || c->op == '<');
    must(isfinite(c->threshold) && c->threshold >= 0);
    must(derived_index(c->name) == c->quantity && c->quantity != DERIVED_NONE);
    must(memchr(c->label, 0, sizeof c->label) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tare_error err = TARE_ERROR_INIT;
    struct alert_rule r, again;
    char *text = mem_strndup((const char *)data, size);
    if (!text) return 0;
    if (alert_parse_served(&again, text, NULL) == TARE_OK && again.when.quantity == DERIVED_NONE)
        must(again.when.op == '>' && !again.also.name[0] && isfinite(again.clear) &&
             again.clear <= again.when.threshold);
    if (alert_parse(&r, text, &err) != TARE_OK) {
        must(err.status != TARE_OK && err.text[0]);
    } else {
        is_sound(&r.when);
        if (r.also.name[0]) is_sound(&r.also);
        must(isfinite(r.clear) &&
             (r.when.op == '>' ? r.clear <= r.when.threshold : r.clear >= r.when.threshold));
        must(alert_parse(&again, r.text, NULL) == TARE_OK);
        must(again.clear == r.clear && again.for_ns == r.for_ns && again.when.threshold == r.when.threshold);
    }
    mem_free(text);
    return 0;
}

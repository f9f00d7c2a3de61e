/* SPDX-License-Identifier: MIT
 * fuzz_settings.c - tare.yaml from anyone. */
#include <stddef.h>
#include <stdint.h>

#include "cli/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct settings s = SETTINGS_INIT;
    if (settings_read(&s, "fuzz.yaml", data, size, NULL) == TARE_OK) settings_get(&s, "bench", "budget");
    settings_release(&s);
    return 0;
}

/* SPDX-License-Identifier: MIT
 * ort_env.c - see ort_env.h. */
#include "cli/ort_env.h"

#include <stdlib.h>

struct ort_places ort_env_places(const char *chosen)
{
    setenv("ORT_DISABLE_TELEMETRY", "1", 0); /* fails without memory only: then the rest does too */
    return (struct ort_places){.chosen = chosen,
                               .tare_ort_lib = secure_getenv("TARE_ORT_LIB"),
                               .ort_dylib_path = secure_getenv("ORT_DYLIB_PATH"),
                               .virtual_env = secure_getenv("VIRTUAL_ENV"),
                               .path = secure_getenv("PATH"),
                               .home = secure_getenv("HOME")};
}

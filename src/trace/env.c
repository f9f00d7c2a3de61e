/* SPDX-License-Identifier: MIT
 * env.c - TARE_TRACE and its companions: start before main. The one place of the library that
 * reads the environment. It says nothing when it fails: `tare doctor` and the missing trace do. All of them are read
 * with secure_getenv (core/banned.h sees to it): in a program that runs with raised privileges (setuid, setgid, file
 * capabilities) they belong to whoever called it, who must not choose which files it writes. */
#include <stdlib.h>
#include <string.h>

#include "trace/recorder.h"

/* 500M, 2G, 1048576. Anything else counts as not set: half understood would be worse. */
static uint64_t env_size(const char *name, uint64_t otherwise)
{
    static const char units[] = "KkMmGg";
    const char *text = secure_getenv(name);
    if (!text || text[0] < '0' || text[0] > '9') return otherwise;
    char *end;
    uint64_t v = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (*end && (!unit || end[1])) return otherwise;
    unsigned shift = unit ? 10 * (unsigned)((unit - units) / 2 + 1) : 0;
    return v > UINT64_MAX >> shift ? UINT64_MAX : v << shift;
}

static uint32_t env_mode(uint32_t otherwise)
{
    const char *text = secure_getenv("TARE_MODE");
    if (!text) return otherwise;
    if (strcmp(text, "aggregate") == 0) return TARE_AGGREGATE;
    if (strcmp(text, "events") == 0) return TARE_EVENTS;
    return otherwise;
}

__attribute__((constructor)) static void start_before_main(void)
{
    const char *path = secure_getenv("TARE_TRACE");
    if (!path || !path[0]) return;
    tare_options o = TARE_OPTIONS_INIT;
    o.path = path;
    o.mode = env_mode(o.mode);
    const char *clock = secure_getenv("TARE_CLOCK");
    if (clock && strcmp(clock, "fast") == 0) o.clock = TARE_CLOCK_FAST;
    o.disk_bytes = env_size("TARE_DISK", o.disk_bytes);
    o.memory_bytes = env_size("TARE_MEMORY", o.memory_bytes);
    const char *weigh = secure_getenv("TARE_WEIGH");
    if (weigh && strcmp(weigh, "off") == 0) o.weigh_one_in = 0;
    const char *fallback = secure_getenv("TARE_CLOCK_FALLBACK");
    start_session(&o, fallback && fallback[0] == '1', NULL);
}

/* SPDX-License-Identifier: MIT
 * plugin.c - a library with scopes of its own, loaded and unloaded by loader.c. */
#include <tare/tare.h>

#ifndef NAME
#define NAME "plugin"
#endif

int plugin_run(int n);
int plugin_run(int n)
{
    for (int i = 0; i < n; i++) {
        TARE_SCOPE(NAME);
        TARE_SCOPE("plugin inner");
        tare_count("plugin steps", 1);
    }
    return n;
}

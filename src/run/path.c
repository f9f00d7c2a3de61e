/* SPDX-License-Identifier: MIT
 * path.c - see path.h. */
#include "run/path.h"

#include <stdio.h>
#include <string.h>

/* Appends p after what it is in; returns the depth of p, the document being 0. */
static size_t append(const struct path *p, size_t skip, char *out, size_t size)
{
    if (!p->up) return 0;
    size_t depth = append(p->up, skip, out, size) + 1;
    size_t used = strlen(out);
    if (depth <= skip) return depth;
    if (p->key) {
        snprintf(out + used, size - used, used ? ".%s" : "%s", p->key);
    } else {
        snprintf(out + used, size - used, "[%zu]", p->index);
    }
    return depth;
}

char *path_text_below(const struct path *p, size_t skip, char *out, size_t size)
{
    out[0] = 0;
    append(p, skip, out, size);
    return out;
}

size_t path_depth(const struct path *p)
{
    size_t n = 0;
    for (; p->up; p = p->up) n++;
    return n;
}

char *path_text(const struct path *p, char *out, size_t size)
{
    return path_text_below(p, 0, out, size);
}

/* SPDX-License-Identifier: MIT
 * metric.c - the table of metrics. */
#include "trace/metric.h"

#include <string.h>

const struct metric metric_table[METRIC_COUNT] = {
#define X(id, name, unit, kind, help) [METRIC_##id] = {name, unit, METRIC_##kind, help},
    METRIC_MAP(X)
#undef X
};

enum metric_id metric_find(const char *name)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (strcmp(metric_table[i].name, name) == 0) return (enum metric_id)i;
    return METRIC_COUNT;
}

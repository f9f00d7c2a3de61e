/* SPDX-License-Identifier: MIT
 * otlp_tree.h - an OTLP request as a tree of its JSON form, whichever way it came. Private to otlp*.c. */
#ifndef SERVER_OTLP_TREE_H
#define SERVER_OTLP_TREE_H

#include <jansson.h>

#include "server/live/readings.h"

/* The list `resourceMetrics`; NULL: it is empty. */
tare_status otlp_take(struct otlp *o, const json_t *resources, tare_error *err);

#endif

/* SPDX-License-Identifier: MIT
 * layer_sums.h - layers added up by what they have in common: their operator, their group. A sum of which a part is
 * unknown is a lower bound. Reads documents. */
#ifndef REPORT_LAYER_SUMS_H
#define REPORT_LAYER_SUMS_H

#include "report/run/layer_columns.h"

struct layer_sums {
    VEC(struct run_layer) items; /* named by what they share; the most time first, else MACs, else bytes */
};

/* `by` is a column of texts. Layers without one are summed under "-". */
tare_status layer_sums_make(struct layer_sums *out, const struct run_case *c, const struct layer_column *by,
                            tare_error *err);
void layer_sums_release(struct layer_sums *s);

#endif

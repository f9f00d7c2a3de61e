/* SPDX-License-Identifier: MIT
 * inspect_dims.h - which dimensions a model leaves open and the value each is given. Private to
 * src/analyze/inspect*.c. */
#ifndef ANALYZE_INSPECT_DIMS_H
#define ANALYZE_INSPECT_DIMS_H

#include "analyze/layers/inspect.h"

/* Fills dims, asked and names. */
tare_status inspect_dims(struct inspected *out, const struct onnx_model *m, const struct inspect_options *o,
                         tare_error *err);

#endif

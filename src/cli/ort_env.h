/* SPDX-License-Identifier: MIT
 * ort_env.h - where the environment says that ONNX Runtime is: the one place that reads those variables. */
#ifndef CLI_ORT_ENV_H
#define CLI_ORT_ENV_H

#include "subject/ort_find.h"

struct ort_places ort_env_places(const char *chosen); /* --ort; NULL: not given */

#endif

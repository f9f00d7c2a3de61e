/* SPDX-License-Identifier: MIT
 * ort_env.h - where the environment says that ONNX Runtime is: the one place that reads those variables. It also asks
 * the runtime through the environment for silence, see below. */
#ifndef CLI_ORT_ENV_H
#define CLI_ORT_ENV_H

#include "subject/ort_find.h"

/* Whoever asks is about to load it. Runtimes from 1.31 on keep an identity of the device and a database of events in
 * the user's cache folder, and a session file in TMPDIR, from the moment they are loaded: earlier than any call could
 * forbid it. A measuring tool leaves nothing behind that nobody asked for, so ORT_DISABLE_TELEMETRY is set here, unless
 * the user set it. Call it while there is one thread only. */
struct ort_places ort_env_places(const char *chosen); /* --ort; NULL: not given */

#endif

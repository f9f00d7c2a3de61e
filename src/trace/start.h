/* SPDX-License-Identifier: MIT
 * start.h - tare_start with the switches that are for tests and for the environment only. */
#ifndef TRACE_START_H
#define TRACE_START_H

#include <stdbool.h>

#include "core/error.h"

/* force_fallback: pretend that the time-stamp counter cannot be trusted. */
tare_status start_session(const tare_options *opts, bool force_fallback, tare_error *err);

#endif

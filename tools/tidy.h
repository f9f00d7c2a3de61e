/* SPDX-License-Identifier: MIT
 * tidy.h - read before every file by clang-tidy, never by a compiler: tells the analyzer, which sees one file at a time,
 * what core/error.h promises in words: these functions hand back a failure. Without it every `return error_set(...)`
 * looks as if it might be a success that left its results unset. */
#ifndef TOOLS_TIDY_H
#define TOOLS_TIDY_H

#include "core/error.h"

static inline tare_status tidy_known(tare_status unknown, tare_status known)
{
    (void)unknown;
    return known;
}

#define error_set(err, status, ...) tidy_known(error_set(err, status, __VA_ARGS__), status)
#define error_errno(...) tidy_known(error_errno(__VA_ARGS__), TARE_IO)
#define error_wrap(...) tidy_known(error_wrap(__VA_ARGS__), TARE_INVALID)

#endif

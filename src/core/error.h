/* SPDX-License-Identifier: MIT
 * error.h - how a failing function explains itself. Fallible functions return tare_status and take a
 * `tare_error *err` last, which may be NULL; the text is a sentence fit for a person, naming the file,
 * the place and the cause. Libraries explain; only cli/ and server/ speak. */
#ifndef CORE_ERROR_H
#define CORE_ERROR_H

#include <tare/tare.h>

/* Fill *err and return `status`, so that callers write `return error_set(err, TARE_IO, ...)`. */
tare_status error_set(tare_error *err, tare_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "out of memory for " and what it was for, as a printf format: error_nomem(err, "%zu samples", n). */
#define error_nomem(err, ...) error_set(err, TARE_NOMEM, "out of memory for " __VA_ARGS__)

/* The same for a failed system call: appends ": " and the text of errno, read at entry. */
tare_status error_errno(tare_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Put "context: " before a text already set. Returns err's status (TARE_INVALID if err is NULL). */
tare_status error_wrap(tare_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

/* SPDX-License-Identifier: MIT
 * error.c - see error.h. Never allocates, so that "out of memory" can always be said. */
#include "core/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *tare_status_text(tare_status status)
{
    switch (status) {
#define X(name, value, text)                                                                       \
    case TARE_##name: return text;
        TARE_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}

tare_status error_set(tare_error *err, tare_status status, const char *format, ...)
{
    if (!err) return status;
    va_list ap;
    va_start(ap, format);
    vsnprintf(err->text, sizeof err->text, format, ap);
    va_end(ap);
    err->status = status;
    return status;
}

tare_status error_errno(tare_error *err, const char *format, ...)
{
    int code = errno;
    tare_status status = code == ENOMEM ? TARE_NOMEM : TARE_IO;
    if (!err) return status;
    va_list ap;
    va_start(ap, format);
    int used = vsnprintf(err->text, sizeof err->text, format, ap);
    va_end(ap);
    if (used >= 0 && (size_t)used < sizeof err->text)
        snprintf(err->text + used, sizeof err->text - (size_t)used, ": %s", strerror(code));
    err->status = status;
    return status;
}

tare_status error_wrap(tare_error *err, const char *format, ...)
{
    if (!err) return TARE_INVALID;
    char inner[sizeof err->text];
    memcpy(inner, err->text, sizeof inner);
    va_list ap;
    va_start(ap, format);
    int used = vsnprintf(err->text, sizeof err->text, format, ap);
    va_end(ap);
    if (used >= 0 && (size_t)used < sizeof err->text)
        snprintf(err->text + used, sizeof err->text - (size_t)used, ": %s", inner);
    return err->status;
}

/* SPDX-License-Identifier: MIT
 * looks.h - what a file is that was given in place of another kind: for the message that refuses it. */
#ifndef CORE_LOOKS_H
#define CORE_LOOKS_H

#include <stddef.h>

enum looks_wanted { LOOKS_MODEL, LOOKS_TRACE, LOOKS_JSON, LOOKS_TENSOR };

/* "looks like .. : what to do with it", of the first bytes; NULL: unknown, or of the kind that was wanted. */
const char *looks_like(const void *bytes, size_t n, enum looks_wanted wanted);

#endif

/* SPDX-License-Identifier: MIT
 * native_inner.h - what the files of native.h share. */
#ifndef SAMPLE_NATIVE_INNER_H
#define SAMPLE_NATIVE_INNER_H

#include "sample/native.h"

/* NULL: no module is there. Good until the next look at the maps, which this may be. */
const struct native_module *native_module_at(struct native_space *s, uint64_t address);
const struct native_module *native_module_known(const struct native_space *s,
                                                uint64_t address); /* without a look */
/* NULL: no table describes it. Good until the next call. */
const struct eh_row *native_row(struct native_space *s, uint64_t ip);

#endif

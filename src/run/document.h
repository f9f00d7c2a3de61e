/* SPDX-License-Identifier: MIT
 * document.h - the structs of a run document, made from the list of its fields: run_fields.def, where each is named,
 * typed and explained. Data only; run.h has the functions. Times are in ns and sizes in bytes, at most INT64_MAX. A
 * struct that begins with `known` is null as a whole until that is set; what is zeroed is unknown. */
#ifndef RUN_DOCUMENT_H
#define RUN_DOCUMENT_H

#include "run/value.h"

#include "run/as_structs.h"
#include "run/run_fields.def"

#endif

/* SPDX-License-Identifier: MIT
 * kserve_load.h - a KServe v2 model under load: one request made of given inputs, and a reader that looks whether each
 * answer holds the outputs it announces. */
#ifndef SUBJECT_KSERVE_LOAD_H
#define SUBJECT_KSERVE_LOAD_H

#include "load/reader.h"
#include "load/source.h"
#include "subject/kserve.h"

/* Who looks at the outputs themselves; all NULL: nobody. `outputs` sets o->fault where they are not as they should be,
 * and says why, as load_reader.end does. */
struct kserve_look {
    void (*clear)(void *ctx);
    const char *(*outputs)(void *ctx, const struct tensor_set *outputs, struct load_outcome *o);
    void *ctx;
};

struct kserve_load {
    struct buf body, headers;
    struct kserve_look look;
    char why[240]; /* of the last answer that was not right */
};
#define KSERVE_LOAD_INIT {.body = BUF_INIT, .headers = BUF_INIT}

/* `inputs`: a file or folder of tensors. */
tare_status kserve_load_open(struct kserve_load *k, const char *inputs, bool binary, tare_error *err);
void kserve_load_close(struct kserve_load *k);
struct load_source kserve_source(struct kserve_load *k);
struct load_reader kserve_reader(struct kserve_load *k);

#endif

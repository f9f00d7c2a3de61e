/* SPDX-License-Identifier: MIT
 * kserve.h - requests and answers of the KServe v2 protocol over HTTP, which Triton and others speak: tensors as JSON,
 * or behind the JSON as bytes (the binary tensor extension). Pure: no socket. */
#ifndef SUBJECT_KSERVE_H
#define SUBJECT_KSERVE_H

#include "subject/tensor.h"

#define KSERVE_HEAD_LENGTH "Inference-Header-Content-Length" /* bytes of JSON, where tensors follow it */

/* The body of a request for these inputs. Binary: *n_json is what KSERVE_HEAD_LENGTH has to say, and outputs are asked
 * for in the same form; else 0. TARE_UNSUPPORTED: a type that KServe, or its JSON, has no word for. */
tare_status kserve_encode(const struct tensor_set *inputs, bool binary, struct buf *body, size_t *n_json,
                          tare_error *err);

/* The outputs of an answer. `n_json`: of KSERVE_HEAD_LENGTH; 0: all of it is JSON. Outputs of text (BYTES) are left
 * out. TARE_FORMAT: what it says is not what there is, or the server tells an error, which is then the text. */
struct kserve_answer {
    const char *body;
    size_t n, n_json;
};
tare_status kserve_decode(const struct kserve_answer *answer, struct tensor_set *out, tare_error *err);

#endif

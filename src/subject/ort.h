/* SPDX-License-Identifier: MIT
 * ort.h - ONNX Runtime loaded at run time from the copy the user already has: no header, no link. Checks the version,
 * fills in the functions that this version has, turns the runtime's own error texts into ours and keeps its log quiet.
 * Never prints, and never touches a slot that the loaded library does not have. */
#ifndef SUBJECT_ORT_H
#define SUBJECT_ORT_H

#include <stdbool.h>

#include "core/error.h"
#include "subject/ort_slots.h"

enum {
    ORT_MINOR_MIN = 8, /* 1.6 and 1.7 have another order of functions */
    ORT_API_MAX = 30   /* the newest interface that this tare knows */
};

/* Enumerations of the C interface. */
enum ort_value_kind { ORT_UNKNOWN, ORT_TENSOR, ORT_SEQUENCE, ORT_MAP, ORT_OPAQUE, ORT_SPARSE, ORT_OPTIONAL };
enum ort_allocator_kind { ORT_ALLOCATOR_DEVICE = 0, ORT_ALLOCATOR_ARENA = 1 };
const char *ort_kind_name(int kind); /* "a sequence" */

struct ort {
    struct ort_calls call;
    char *path;       /* of the library, absolute where known */
    char version[32]; /* "1.30.0" */
    int minor, api;   /* 30; the API version asked for: min(minor, ORT_API_MAX) */
    struct ort_env *env;
    void *handle; /* of dlopen */
};

/* Load a library and make its environment. Errors name the library and what is wrong with it: not found, no ONNX
 * Runtime, a wheel that hides its interface, too old. */
tare_status ort_open(struct ort **out, const char *path, tare_error *err);
void ort_close(struct ort *o); /* NULL is fine; sessions and values must be gone */

/* "1.23.2" -> 23; -1: not such a version. */
int ort_version_minor(const char *version);

/* NULL gives TARE_OK; else `what` and the runtime's own words, and the status is released. The runtime's last warnings
 * are added where it gives no words of its own. */
tare_status ort_check(const struct ort *o, struct ort_status *st, tare_error *err, const char *what, ...)
    __attribute__((format(printf, 4, 5)));

/* Element types: the runtime numbers three of them otherwise than ONNX files do. */
int ort_type_from_onnx(int onnx_type);
int ort_type_to_onnx(int ort_type); /* ONNX_UNDEFINED: unknown to this tare */

/* What the runtime logged (warnings and worse) since the last call, newest last, cut to `size`; "" when nothing. */
void ort_log_take(char *out, size_t size);

#endif

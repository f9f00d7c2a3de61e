/* SPDX-License-Identifier: MIT
 * ort.h - ONNX Runtime loaded at run time from the copy the user already has: no header, no link. Checks the version,
 * fills in the functions that this version has, turns the runtime's own error texts into ours and keeps its log quiet.
 * Never prints, and never touches a slot that the loaded library does not have. */
#ifndef SUBJECT_ORT_H
#define SUBJECT_ORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/* ---- the part of the C interface that tare calls, as data: where each function stands in the runtime's table, since
 * which API version, and its type. The runtime only ever appends to its table, so a number stays right; from 1.8 on it
 * is the same in every release. A slot newer than the loaded library must not even be read, which ort.c takes care of:
 * such a function is NULL. Handles are opaque ---- */

struct ort_status;
struct ort_env;
struct ort_session_options;
struct ort_session;
struct ort_run_options;
struct ort_value;
struct ort_memory_info;
struct ort_allocator;
struct ort_type_info;
struct ort_tensor_info;
struct ort_provider_options;
struct ort_key_values;
struct ort_ep_subgraph;
struct ort_ep_node;
struct ort_io_binding;

typedef void ort_log_function(void *param, int severity, const char *category, const char *id,
                              const char *where, const char *text);

/* X(name, slot, since API, result, arguments) */
#define ORT_SLOTS(X) \
    X(GetErrorCode, 1, 1, int, (const struct ort_status *)) \
    X(GetErrorMessage, 2, 1, const char *, (const struct ort_status *)) \
    X(ReleaseStatus, 93, 1, void, (struct ort_status *)) \
    X(CreateEnvWithCustomLogger, 4, 1, struct ort_status *, \
      (ort_log_function *, void *param, int level, const char *id, struct ort_env **)) \
    X(DisableTelemetryEvents, 6, 1, struct ort_status *, (const struct ort_env *)) \
    X(ReleaseEnv, 92, 1, void, (struct ort_env *)) \
    X(CreateSession, 7, 1, struct ort_status *, \
      (const struct ort_env *, const char *path, const struct ort_session_options *, struct ort_session **)) \
    X(CreateSessionFromArray, 8, 1, struct ort_status *, \
      (const struct ort_env *, const void *bytes, size_t n, const struct ort_session_options *, \
       struct ort_session **)) \
    X(ReleaseSession, 95, 1, void, (struct ort_session *)) \
    X(Run, 9, 1, struct ort_status *, \
      (struct ort_session *, const struct ort_run_options *, const char *const *in_names, \
       const struct ort_value *const *in, size_t n_in, const char *const *out_names, size_t n_out, \
       struct ort_value **out)) \
    X(CreateRunOptions, 39, 1, struct ort_status *, (struct ort_run_options **)) \
    X(ReleaseRunOptions, 97, 1, void, (struct ort_run_options *)) \
    X(RunOptionsSetTerminate, 46, 1, struct ort_status *, (struct ort_run_options *)) \
    X(RunOptionsUnsetTerminate, 47, 1, struct ort_status *, (struct ort_run_options *)) \
    X(CreateSessionOptions, 10, 1, struct ort_status *, (struct ort_session_options **)) \
    X(ReleaseSessionOptions, 100, 1, void, (struct ort_session_options *)) \
    X(SetOptimizedModelFilePath, 11, 1, struct ort_status *, (struct ort_session_options *, const char *path)) \
    X(SetSessionExecutionMode, 13, 1, struct ort_status *, (struct ort_session_options *, int)) \
    X(EnableProfiling, 14, 1, struct ort_status *, (struct ort_session_options *, const char *prefix)) \
    X(DisableMemPattern, 17, 1, struct ort_status *, (struct ort_session_options *)) \
    X(DisableCpuMemArena, 19, 1, struct ort_status *, (struct ort_session_options *)) \
    X(SetSessionLogSeverityLevel, 22, 1, struct ort_status *, (struct ort_session_options *, int)) \
    X(SetSessionGraphOptimizationLevel, 23, 1, struct ort_status *, (struct ort_session_options *, int)) \
    X(SetIntraOpNumThreads, 24, 1, struct ort_status *, (struct ort_session_options *, int)) \
    X(SetInterOpNumThreads, 25, 1, struct ort_status *, (struct ort_session_options *, int)) \
    X(AddFreeDimensionOverrideByName, 124, 3, struct ort_status *, \
      (struct ort_session_options *, const char *name, int64_t)) \
    X(AddSessionConfigEntry, 130, 5, struct ort_status *, \
      (struct ort_session_options *, const char *key, const char *value)) \
    X(GetAvailableProviders, 125, 4, struct ort_status *, (char ***, int *)) \
    X(ReleaseAvailableProviders, 126, 4, struct ort_status *, (char **, int)) \
    X(AppendCuda, 204, 11, struct ort_status *, \
      (struct ort_session_options *, const struct ort_provider_options *)) \
    X(CreateCudaOptions, 205, 11, struct ort_status *, (struct ort_provider_options **)) \
    X(ReleaseCudaOptions, 208, 11, void, (struct ort_provider_options *)) \
    X(AppendTensorrt, 170, 9, struct ort_status *, \
      (struct ort_session_options *, const struct ort_provider_options *)) \
    X(CreateTensorrtOptions, 171, 9, struct ort_status *, (struct ort_provider_options **)) \
    X(ReleaseTensorrtOptions, 174, 9, void, (struct ort_provider_options *)) \
    X(AppendProvider, 216, 12, struct ort_status *, \
      (struct ort_session_options *, const char *name, const char *const *keys, const char *const *values, size_t)) \
    X(SessionEndProfiling, 110, 2, struct ort_status *, \
      (struct ort_session *, struct ort_allocator *, char **file)) \
    X(SessionGetProfilingStartTimeNs, 146, 5, struct ort_status *, (const struct ort_session *, uint64_t *)) \
    X(SessionGetInputCount, 30, 1, struct ort_status *, (const struct ort_session *, size_t *)) \
    X(SessionGetOutputCount, 31, 1, struct ort_status *, (const struct ort_session *, size_t *)) \
    X(SessionGetInputTypeInfo, 33, 1, struct ort_status *, \
      (const struct ort_session *, size_t, struct ort_type_info **)) \
    X(SessionGetOutputTypeInfo, 34, 1, struct ort_status *, \
      (const struct ort_session *, size_t, struct ort_type_info **)) \
    X(SessionGetInputName, 36, 1, struct ort_status *, \
      (const struct ort_session *, size_t, struct ort_allocator *, char **)) \
    X(SessionGetOutputName, 37, 1, struct ort_status *, \
      (const struct ort_session *, size_t, struct ort_allocator *, char **)) \
    X(GetOnnxTypeFromTypeInfo, 56, 1, struct ort_status *, (const struct ort_type_info *, int *)) \
    X(CastTypeInfoToTensorInfo, 55, 1, struct ort_status *, \
      (const struct ort_type_info *, const struct ort_tensor_info **)) \
    X(ReleaseTypeInfo, 98, 1, void, (struct ort_type_info *)) \
    X(ReleaseTensorTypeAndShapeInfo, 99, 1, void, (struct ort_tensor_info *)) \
    X(GetTensorElementType, 60, 1, struct ort_status *, (const struct ort_tensor_info *, int *)) \
    X(GetDimensionsCount, 61, 1, struct ort_status *, (const struct ort_tensor_info *, size_t *)) \
    X(GetDimensions, 62, 1, struct ort_status *, (const struct ort_tensor_info *, int64_t *, size_t)) \
    X(GetSymbolicDimensions, 63, 1, struct ort_status *, \
      (const struct ort_tensor_info *, const char **, size_t)) \
    X(HasShape, 390, 24, _Bool, (const struct ort_tensor_info *)) \
    X(CreateCpuMemoryInfo, 69, 1, struct ort_status *, (int allocator, int memory, struct ort_memory_info **)) \
    X(CreateMemoryInfo, 68, 1, struct ort_status *, \
      (const char *name, int allocator, int device, int memory, struct ort_memory_info **)) \
    X(ReleaseMemoryInfo, 94, 1, void, (struct ort_memory_info *)) \
    X(GetAllocatorWithDefaultOptions, 78, 1, struct ort_status *, (struct ort_allocator **)) \
    X(AllocatorFree, 76, 1, struct ort_status *, (struct ort_allocator *, void *)) \
    X(CreateAllocator, 131, 5, struct ort_status *, \
      (const struct ort_session *, const struct ort_memory_info *, struct ort_allocator **)) \
    X(ReleaseAllocator, 132, 5, void, (struct ort_allocator *)) \
    X(AllocatorGetStats, 319, 23, struct ort_status *, (const struct ort_allocator *, struct ort_key_values **)) \
    X(GetKeyValuePairs, 298, 22, void, \
      (const struct ort_key_values *, const char *const **, const char *const **, size_t *)) \
    X(ReleaseKeyValuePairs, 300, 22, void, (struct ort_key_values *)) \
    X(CreateTensorWithData, 49, 1, struct ort_status *, \
      (const struct ort_memory_info *, void *data, size_t bytes, const int64_t *shape, size_t rank, int type, \
       struct ort_value **)) \
    X(GetValueType, 67, 1, struct ort_status *, (const struct ort_value *, int *)) \
    X(HasValue, 192, 10, struct ort_status *, (const struct ort_value *, int *)) \
    X(GetTensorMutableData, 51, 1, struct ort_status *, (struct ort_value *, void **)) \
    X(GetTensorTypeAndShape, 65, 1, struct ort_status *, (const struct ort_value *, struct ort_tensor_info **)) \
    X(ReleaseValue, 96, 1, void, (struct ort_value *)) \
    X(RunWithBinding, 133, 5, struct ort_status *, \
      (struct ort_session *, const struct ort_run_options *, const struct ort_io_binding *)) \
    X(CreateIoBinding, 134, 5, struct ort_status *, (struct ort_session *, struct ort_io_binding **)) \
    X(ReleaseIoBinding, 135, 5, void, (struct ort_io_binding *)) \
    X(BindInput, 136, 5, struct ort_status *, \
      (struct ort_io_binding *, const char *name, const struct ort_value *)) \
    X(BindOutputToDevice, 138, 5, struct ort_status *, \
      (struct ort_io_binding *, const char *name, const struct ort_memory_info *)) \
    X(GetBoundOutputValues, 140, 5, struct ort_status *, \
      (const struct ort_io_binding *, struct ort_allocator *, struct ort_value ***, size_t *)) \
    X(SynchronizeBoundInputs, 202, 10, struct ort_status *, (struct ort_io_binding *)) \
    X(SynchronizeBoundOutputs, 203, 10, struct ort_status *, (struct ort_io_binding *)) \
    X(SessionGetEpGraphAssignmentInfo, 407, 24, struct ort_status *, \
      (const struct ort_session *, const struct ort_ep_subgraph *const **, size_t *)) \
    X(EpSubgraphGetEpName, 408, 24, struct ort_status *, (const struct ort_ep_subgraph *, const char **)) \
    X(EpSubgraphGetNodes, 409, 24, struct ort_status *, \
      (const struct ort_ep_subgraph *, const struct ort_ep_node *const **, size_t *)) \
    X(GetBuildInfoString, 254, 15, const char *, (void))

/* The functions by name; NULL where the library is too old. */
struct ort_calls {
#define X(name, slot, since, result, arguments) result(*name) arguments;
    ORT_SLOTS(X)
#undef X
};

/* ---- the library ---- */

enum {
    ORT_MINOR_MIN = 8, /* 1.6 and 1.7 have another order of functions */
    ORT_API_MAX = 30   /* the newest interface that this tare knows */
};

/* Enumerations of the C interface. */
enum ort_value_kind { ORT_UNKNOWN, ORT_TENSOR, ORT_SEQUENCE, ORT_MAP, ORT_OPAQUE, ORT_SPARSE, ORT_OPTIONAL };
enum ort_execution { ORT_SEQUENTIAL, ORT_PARALLEL };
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

/* For a call whose failure is no error: true when it went well; the status is released. */
bool ort_done(const struct ort *o, struct ort_status *st);

/* Element types: the runtime numbers three of them otherwise than ONNX files do. */
int ort_type_from_onnx(int onnx_type);
int ort_type_to_onnx(int ort_type); /* ONNX_UNDEFINED: unknown to this tare */

/* What the runtime logged (warnings and worse) since the last call, newest last, cut to `size`; "" when nothing. */
void ort_log_take(char *out, size_t size);

#endif

/* SPDX-License-Identifier: MIT
 * cupti.h - the part of CUPTI that tare uses, in our own words: numbers, offsets and the functions found at run time.
 * No header of the vendor is needed. Only leading fields that CUDA 11 to 13 have at the same place are read without
 * looking at the version; what came later is read where the record is long enough. */
#ifndef GPU_CUPTI_H
#define GPU_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cupti_kind {
    CUPTI_MEMCPY = 1,
    CUPTI_MEMSET = 2,
    CUPTI_DRIVER = 4,
    CUPTI_RUNTIME = 5,
    CUPTI_DEVICE = 8,
    CUPTI_CONCURRENT_KERNEL = 10,
    CUPTI_OVERHEAD = 17,
    CUPTI_MEMCPY2 = 22,
    CUPTI_EXTERNAL_CORRELATION = 39,
    CUPTI_MEMORY2 = 49,
    CUPTI_MEMORY_POOL = 50,
    CUPTI_GRAPH_TRACE = 51,
    CUPTI_JIT = 52,
};

enum cupti_result {
    CUPTI_OK = 0,
    CUPTI_END_OF_BUFFER = 12,
    CUPTI_INVALID_KIND = 21,
    CUPTI_OTHER_SUBSCRIBER = 39,
    CUPTI_NO_DRIVER = 999
};

enum { CUPTI_DOMAIN_DRIVER = 1, CUPTI_DOMAIN_RUNTIME = 2, CUPTI_DOMAIN_RESOURCE = 3 };
enum { CUPTI_CONTEXT_DESTROY_STARTING = 2, CUPTI_ENTER = 0 }; /* of callbacks */
enum { CUPTI_ATTR_ZEROED_BUFFER = 5, CUPTI_THREAD_ID_SYSTEM = 1, CUPTI_CUSTOM2 = 5 };
enum { CUPTI_FLUSH_FORCED = 1 };

struct cupti_subscriber_params {
    size_t bytes;
    const char *name;
    char *other;
    size_t other_bytes;
};

typedef void cupti_request_fn(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void cupti_complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
typedef void cupti_callback_fn(void *user, int domain, uint32_t id, const void *data);

/* CALL(our name, exported name, needed, parameters) */
#define CUPTI_CALLS(CALL)                                                                                    \
    CALL(get_version, "cuptiGetVersion", true, (uint32_t * version))                                         \
    CALL(get_timestamp, "cuptiGetTimestamp", true, (uint64_t * now))                                         \
    CALL(subscribe, "cuptiSubscribe", true, (void **subscriber, cupti_callback_fn *fn, void *user))          \
    CALL(subscribe_v2, "cuptiSubscribe_v2", false,                                                           \
         (void **subscriber, cupti_callback_fn *fn, void *user, struct cupti_subscriber_params *p))          \
    CALL(unsubscribe, "cuptiUnsubscribe", false, (void *subscriber))                                         \
    CALL(enable_callback, "cuptiEnableCallback", true,                                                       \
         (uint32_t enable, void *subscriber, int domain, uint32_t id))                                       \
    CALL(callback_name, "cuptiGetCallbackName", true, (int domain, uint32_t id, const char **name))          \
    CALL(result_string, "cuptiGetResultString", false, (int result, const char **text))                      \
    CALL(thread_id_type, "cuptiSetThreadIdType", false, (int type))                                          \
    CALL(set_attribute, "cuptiActivitySetAttribute", true, (int attribute, size_t *size, void *value))       \
    CALL(register_callbacks, "cuptiActivityRegisterCallbacks", true,                                         \
         (cupti_request_fn * request, cupti_complete_fn * complete))                                         \
    CALL(enable, "cuptiActivityEnable", true, (int kind))                                                    \
    CALL(enable_and_dump, "cuptiActivityEnableAndDump", false, (int kind))                                   \
    CALL(disable, "cuptiActivityDisable", true, (int kind))                                                  \
    CALL(enable_runtime_api, "cuptiActivityEnableRuntimeApi", false, (uint32_t id, uint8_t enable))          \
    CALL(enable_driver_api, "cuptiActivityEnableDriverApi", false, (uint32_t id, uint8_t enable))            \
    CALL(flush_all, "cuptiActivityFlushAll", true, (uint32_t flag))                                          \
    CALL(next_record, "cuptiActivityGetNextRecord", true, (uint8_t *buffer, size_t valid, uint8_t **record)) \
    CALL(dropped, "cuptiActivityGetNumDroppedRecords", true, (void *context, uint32_t stream, size_t *n))    \
    CALL(push_external, "cuptiActivityPushExternalCorrelationId", false, (int kind, uint64_t id))            \
    CALL(pop_external, "cuptiActivityPopExternalCorrelationId", false, (int kind, uint64_t *last))

struct cupti {
#define CALL(name, symbol, needed, parameters) int(*name) parameters;
    CUPTI_CALLS(CALL)
#undef CALL
    uint32_t version;
    char path[512]; /* of the library */
};

/* Finds the copy that the process has, or one beside its CUDA runtime, or an installed one. False: `why` says what was
 * looked at. */
bool cupti_load(struct cupti *c, const char *wanted, char *why, size_t why_bytes);

/* Fields by place: all are little-endian and naturally aligned. */
static inline uint64_t at64(const uint8_t *record, size_t offset)
{
    uint64_t v;
    __builtin_memcpy(&v, record + offset, sizeof v);
    return v;
}
static inline uint32_t at32(const uint8_t *record, size_t offset)
{
    uint32_t v;
    __builtin_memcpy(&v, record + offset, sizeof v);
    return v;
}
static inline uint16_t at16(const uint8_t *record, size_t offset)
{
    uint16_t v;
    __builtin_memcpy(&v, record + offset, sizeof v);
    return v;
}
static inline const char *at_text(const uint8_t *record, size_t offset)
{
    const char *v;
    __builtin_memcpy(&v, record + offset, sizeof v);
    return v;
}

#endif

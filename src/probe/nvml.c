/* SPDX-License-Identifier: MIT
 * nvml.c - see nvml.h. */
#include "probe/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_MOST = 4 };

static const struct call {
    size_t offset;
    const char *names[NAMES_MOST]; /* ends with NULL */
} calls[] = {
#define X(field, args, ...) {offsetof(struct nvml, field), {__VA_ARGS__, NULL}},
    NVML_CALLS(X)
#undef X
        {offsetof(struct nvml, error_string), {"nvmlErrorString", NULL}},
};

const char *nvml_why(const struct nvml *n, int code)
{
    const char *text = n->error_string ? n->error_string(code) : NULL;
    return text ? text : "NVML gives no reason";
}

/* Loaded at run time and never linked: most machines have no such library. Newer names of a call come
 * first in its row; one that is missing stays NULL and only its number is not told, but for the four
 * without which nothing works. */
tare_status nvml_load(struct nvml *n, const char *root, tare_error *err)
{
    char path[4096] = "libnvidia-ml.so.1";
    memset(n, 0, sizeof *n);
    if (root[0]) snprintf(path, sizeof path, "%s/usr/lib/libnvidia-ml.so.1", root);
    n->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!n->library)
        return error_set(err, TARE_UNSUPPORTED,
                         "no NVIDIA driver library: libnvidia-ml.so.1 cannot be loaded");
    for (const struct call *c = calls; c < calls + sizeof calls / sizeof *calls; c++) {
        void *found = NULL;
        for (int i = 0; !found && c->names[i]; i++) found = dlsym(n->library, c->names[i]);
        memcpy((char *)n + c->offset, &found, sizeof found);
    }
    return TARE_OK;
}

tare_status nvml_start(struct nvml *n, tare_error *err)
{
    int code = n->init && n->shutdown && n->count && n->by_index ? n->init() : NVML_NO_CALL;
    if (code == NVML_OK) return TARE_OK;
    error_set(err, TARE_UNSUPPORTED, "NVML does not start: %s", nvml_why(n, code));
    n->shutdown = NULL; /* it was never started */
    nvml_close(n);
    return TARE_UNSUPPORTED;
}

tare_status nvml_open(struct nvml *n, const char *root, tare_error *err)
{
    tare_status s = nvml_load(n, root, err);
    return s == TARE_OK ? nvml_start(n, err) : s;
}

void nvml_close(struct nvml *n)
{
    if (n->library && n->shutdown) n->shutdown();
    if (n->library) dlclose(n->library);
    memset(n, 0, sizeof *n);
}

/* SPDX-License-Identifier: MIT
 * gpu_record.c - see gpu_record.h. */
#include "probe/gpu_record.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* From the command's folder: in a build; where `make install` puts it, LIBDIR included (TARE_LIBDIR is from PREFIX/bin
 * there, so that a tree that is moved as a whole still finds it); in the Python package. */
#ifndef TARE_LIBDIR
#define TARE_LIBDIR "../lib"
#endif
static const char *const beside[] = {"", TARE_LIBDIR "/", "../lib/", "../_lib/"};

bool library_beside(const char *file, char out[PATH_MAX])
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0) return false;
    exe[n] = 0;
    char *slash = strrchr(exe, '/');
    if (!slash) return false;
    *slash = 0;
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        int used = snprintf(out, PATH_MAX, "%s/%s%s", exe, beside[i], file);
        if (used > 0 && used < PATH_MAX && access(out, R_OK) == 0) return true;
    }
    return false;
}

bool gpu_record_library(char out[PATH_MAX])
{
    return library_beside("libtare-gpu.so", out);
}

tare_status gpu_record_start(struct gpu_recording *r, const char *library, const char *path, tare_error *err)
{
    char found[PATH_MAX];
    const char *(*start)(const char *path, unsigned what);
    if (!library && !gpu_record_library(found)) return error_set(err, TARE_UNSUPPORTED, GPU_RECORD_MISSING);
    void *handle = dlopen(library ? library : found, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) return error_set(err, TARE_UNSUPPORTED, "%s", dlerror());
    *(void **)&start = dlsym(handle, "tare_gpu_start");
    *(void **)&r->stop = dlsym(handle, "tare_gpu_stop");
    const char *why = start && r->stop ? start(path, 0) : "libtare-gpu.so is of another version of tare";
    r->library = why ? NULL : handle;
    if (why) error_set(err, TARE_UNSUPPORTED, "%s", why); /* the text may be the library's own */
    if (why) dlclose(handle);
    return why ? TARE_UNSUPPORTED : TARE_OK;
}

tare_status gpu_record_stop(struct gpu_recording *r, tare_error *err)
{
    if (!r->library) return TARE_OK;
    const char *why = r->stop();
    r->library = NULL;
    return why ? error_set(err, TARE_UNSUPPORTED, "%s", why) : TARE_OK;
}

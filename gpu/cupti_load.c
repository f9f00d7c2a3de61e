/* SPDX-License-Identifier: MIT
 * cupti_load.c - which libcupti: the one that is in the process already, for two copies would be two clients. Else
 * the one that TARE_CUPTI names, one on the loader's path, one beside the CUDA runtime that is in use, an installed
 * one. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "gpu/cupti.h"

static const char *const sonames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"};
enum { N_SONAMES = sizeof sonames / sizeof *sonames };

struct runtime {
    char folder[400]; /* of libcudart, with the slash; "": not in the process */
};

static int find_runtime(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct runtime *r = arg;
    (void)size;
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    if (!slash || strncmp(slash + 1, "libcudart.so", 12) != 0) return 0;
    size_t n = (size_t)(slash - info->dlpi_name) + 1;
    if (n >= sizeof r->folder) return 0;
    memcpy(r->folder, info->dlpi_name, n);
    r->folder[n] = 0;
    return 1;
}

static void *open_in(const char *folder)
{
    char path[640];
    for (int i = 0; i < N_SONAMES; i++) {
        snprintf(path, sizeof path, "%s%s", folder, sonames[i]);
        void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (lib) return lib;
    }
    return NULL;
}

/* pip's layouts are site-packages/nvidia/cu13/lib/ (all in one) and .../nvidia/cuda_runtime/lib/ with cuda_cupti/lib/
 * beside it; the toolkit has extras/CUPTI/lib64. */
static void *open_beside_runtime(void)
{
    static const char *const beside[] = {"", "../../cuda_cupti/lib/", "../extras/CUPTI/lib64/"};
    struct runtime r = {""};
    char folder[500];
    void *lib = NULL;
    dl_iterate_phdr(find_runtime, &r);
    for (size_t i = 0; !lib && r.folder[0] && i < sizeof beside / sizeof *beside; i++) {
        snprintf(folder, sizeof folder, "%s%s", r.folder, beside[i]);
        lib = open_in(folder);
    }
    return lib;
}

static void *open_any(const char *wanted)
{
    static const char *const installed[] = {"/usr/local/cuda/extras/CUPTI/lib64/", "/usr/local/cuda/lib64/",
                                            "/usr/lib/x86_64-linux-gnu/"};
    void *lib = NULL;
    if (wanted) return dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
    for (int i = 0; !lib && i < N_SONAMES; i++) lib = dlopen(sonames[i], RTLD_NOW | RTLD_NOLOAD);
    if (!lib) lib = open_beside_runtime();
    for (int i = 0; !lib && i < N_SONAMES; i++) lib = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; !lib && i < sizeof installed / sizeof *installed; i++) lib = open_in(installed[i]);
    return lib;
}

static bool bind(struct cupti *c, void *lib, char *why, size_t why_bytes)
{
    const char *missing = NULL;
#define CALL(name, symbol, needed, parameters)         \
    *(void **)&c->name = dlsym(lib, symbol);           \
    if (needed && !c->name && !missing) missing = symbol;
    CUPTI_CALLS(CALL)
#undef CALL
    if (missing) snprintf(why, why_bytes, "libcupti has no %s: it is too old for tare", missing);
    return !missing;
}

/* Several versions may lie on one machine (see open_any()), and what can be recorded depends on which it
 * is: the path goes into the trace beside the version. */
bool cupti_load(struct cupti *c, const char *wanted, char *why, size_t why_bytes)
{
    struct link_map *map = NULL;
    void *lib = open_any(wanted);
    if (!lib) {
        if (wanted)
            snprintf(why, why_bytes, "TARE_CUPTI=%s cannot be loaded: %s", wanted, dlerror());
        else
            snprintf(
                why, why_bytes,
                "no libcupti: not in the process, not beside its CUDA runtime, not installed; TARE_CUPTI "
                "names one");
        return false;
    }
    if (dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0 && map) snprintf(c->path, sizeof c->path, "%s", map->l_name);
    if (!bind(c, lib, why, why_bytes)) return false;
    return c->get_version(&c->version) == CUPTI_OK || !snprintf(why, why_bytes, "libcupti tells no version");
}

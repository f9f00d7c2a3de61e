/* SPDX-License-Identifier: MIT
 * gpu_profile.c - see gpu_profile.h. */
#include "run/gpu_profile.h"

#include <string.h>

#include "run/fields.h"

tare_status gpu_profile_init(struct gpu_profile *p, tare_error *err)
{
    struct run like = {0};
    tare_status s = run_init(&like, "gpu", err); /* id, time and tool as every document has them */
    if (s == TARE_OK)
        *p = (struct gpu_profile){
            .arena = like.arena, .id = like.id, .created = like.created, .tool = like.tool};
    return s;
}

void gpu_profile_release(struct gpu_profile *p)
{
    arena_release(&p->arena);
    memset(p, 0, sizeof *p);
}

tare_status gpu_profile_write(const struct gpu_profile *p, struct buf *out, tare_error *err)
{
    return fields_write(&gpu_form, p, &p->arena, (struct fields_to){out, 0}, err);
}

static const struct {
    const char *name, *words;
} causes[] = {
    {"sync", "the program waited for results before it launched more work"},
    {"copy", "copies between host and GPU held the program up"},
    {"communication", "launched in time, it waited for communication with other ranks"},
    {"launch", "launching: the call, and the way to the GPU"},
    {"allocation", "taking or freeing GPU memory"},
    {"loading", "loading code to the GPU"},
    {"host-running", "the launching thread ran other code"},
    {"host-waiting", "the launching thread waited: for data, a lock or another process"},
    {"host-sleeping", "the launching thread slept"},
    {"host", "the program did other things (looked at too seldom to say which)"},
    {"unknown", "unknown: the launch was not recorded, or waited for something not recorded"},
};

const char *gpu_cause_words(const char *cause)
{
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (strcmp(causes[i].name, cause) == 0) return causes[i].words;
    return "";
}

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

/* SPDX-License-Identifier: MIT
 * external.h - weights kept in files beside a model: found below its folder and nowhere else, measured when
 * the model is opened, mapped when first asked for. Never writes, never follows "..". A symbolic link
 * inside the folder is followed, because download caches are made of them. */
#ifndef MODEL_EXTERNAL_H
#define MODEL_EXTERNAL_H

#include <stdint.h>

#include "core/error.h"
#include "core/file.h"
#include "core/map.h"
#include "core/vec.h"

struct external_file {
    uint64_t size;
    struct file_view view; /* empty until first asked for */
};

struct external {
    char *folder; /* of the model; NULL: it was read from memory */
    VEC(struct external_file) files;
    struct map_str by_location; /* number of the file + 1 */
};

tare_status external_init(struct external *e, const char *model_path, tare_error *err);
void external_release(struct external *e);

/* The file must be there and have offset + bytes. Without a folder only the name is checked. */
tare_status external_check(struct external *e, const char *location, uint64_t offset, uint64_t bytes,
                           tare_error *err);

/* Those bytes, mapped; valid until external_release(). */
tare_status external_bytes(struct external *e, const char *location, uint64_t offset, const uint8_t **out,
                           tare_error *err);

#endif

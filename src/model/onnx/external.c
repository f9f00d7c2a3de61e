/* SPDX-License-Identifier: MIT
 * external.c - see onnx_parse.h. */
#include "model/onnx/onnx_parse.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "core/buf.h"
#include "core/mem.h"

tare_status external_init(struct external *e, const char *model_path, tare_error *err)
{
    *e = (struct external){.by_location = MAP_STR_INIT};
    if (!model_path) return TARE_OK;
    const char *slash = strrchr(model_path, '/');
    e->folder = slash ? mem_strndup(model_path, (size_t)(slash - model_path) + 1) : mem_strdup("./");
    return e->folder ? TARE_OK : error_set(err, TARE_NOMEM, "out of memory");
}

void external_release(struct external *e)
{
    for (size_t i = 0; i < e->files.n; i++) file_unmap(&e->files.items[i].view);
    vec_release(&e->files);
    map_str_release(&e->by_location);
    mem_free(e->folder);
    e->folder = NULL;
}

/* Is this a name below a folder: relative, no "..", not empty? The error's text lacks the model's name. */
static tare_status external_check_name(const char *location, tare_error *err)
{
    const char *why = NULL;
    if (!location[0]) why = "has no file name";
    if (location[0] == '/' || location[0] == '\\') why = "is not below the model's folder (an absolute path)";
    if (strchr(location, ':') == location + 1) why = "is not below the model's folder (a drive)";
    for (const char *part = location; part && !why; part = strpbrk(part, "/\\")) {
        part += strspn(part, "/\\");
        if (strncmp(part, "..", 2) == 0 && (!part[2] || strchr("/\\", part[2])))
            why = "is not below the model's folder (\"..\")";
    }
    if (!why) return TARE_OK;
    return error_set(err, TARE_INVALID, "external data '%.100s' %s", location, why);
}

static tare_status path_of(const struct external *e, const char *location, struct buf *path, tare_error *err)
{
    buf_add_str(path, e->folder);
    buf_add_str(path, location);
    return buf_status(path, err);
}

static tare_status measure_file(const struct external *e, const char *location, uint64_t *size,
                                tare_error *err)
{
    struct buf path = BUF_INIT;
    struct stat st;
    tare_status s = path_of(e, location, &path, err);
    if (s == TARE_OK && stat(path.data, &st) < 0) {
        s = errno == ENOENT
                ? error_set(err, TARE_IO, "external data '%.100s' is not beside the model", location)
                : error_errno(err, "external data '%.100s'", location);
    } else if (s == TARE_OK && !S_ISREG(st.st_mode)) {
        s = error_set(err, TARE_INVALID, "external data '%.100s' is not a regular file", location);
    } else if (s == TARE_OK) {
        *size = (uint64_t)st.st_size;
    }
    buf_release(&path);
    return s;
}

/* The file of a location, measured at its first use. */
static tare_status find_file(struct external *e, const char *location, struct external_file **out,
                             tare_error *err)
{
    const uint64_t *known = map_str_find(&e->by_location, location, strlen(location));
    struct external_file file = {0, FILE_VIEW_INIT};
    if (known) {
        *out = &e->files.items[*known - 1];
        return TARE_OK;
    }
    tare_status s = measure_file(e, location, &file.size, err);
    if (s == TARE_OK) s = vec_push(&e->files, file, err);
    if (s == TARE_OK) s = map_str_put(&e->by_location, location, strlen(location), e->files.n, err);
    if (s < 0) return s;
    *out = vec_last(&e->files);
    return TARE_OK;
}

tare_status external_check(struct external *e, const char *location, uint64_t offset, uint64_t bytes,
                           tare_error *err)
{
    struct external_file *file;
    tare_status s = external_check_name(location, err);
    if (s < 0 || !e->folder) return s;
    if ((s = find_file(e, location, &file, err)) < 0) return s;
    if (offset <= file->size && bytes <= file->size - offset) return TARE_OK;
    return error_set(err, TARE_FORMAT,
                     "external data '%.100s' has %llu bytes, but %llu at offset %llu are needed (truncated?)",
                     location, (unsigned long long)file->size, (unsigned long long)bytes,
                     (unsigned long long)offset);
}

/* The file is mapped at the first use and stays mapped: `out` points into it. Offset and length were
 * checked against the size at opening, so that a file that shrank since must be refused here: reading
 * behind its end is a SIGBUS. */
tare_status external_bytes(struct external *e, const char *location, uint64_t offset, const uint8_t **out,
                           tare_error *err)
{
    struct external_file *file;
    if (!e->folder)
        return error_set(err, TARE_UNSUPPORTED, "external data '%.100s': the model was read from memory",
                         location);
    tare_status s = find_file(e, location, &file, err);
    if (s == TARE_OK && !file->view.size) {
        struct buf path = BUF_INIT;
        s = path_of(e, location, &path, err);
        if (s == TARE_OK) s = file_map(path.data, &file->view, err);
        buf_release(&path);
    }
    if (s < 0) return s;
    if (file->view.size < file->size)
        return error_set(err, TARE_FORMAT, "external data '%.100s' has shrunk since the model was opened",
                         location);
    *out = file->view.data + offset;
    return TARE_OK;
}

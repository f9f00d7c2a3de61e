/* SPDX-License-Identifier: MIT
 * run_load.c - run documents from files; apart from run_save.c, which programs without a JSON reader use too. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "run/run.h"

/* Read rather than mapped: a file that shrinks meanwhile must be an error, not a signal. */
static tare_status read_all(int fd, const char *path, struct buf *to, tare_error *err)
{
    for (;;) {
        if (buf_reserve(to, 1 << 16) < 0) return error_set(err, TARE_NOMEM, "%s: out of memory", path);
        ssize_t n = read(fd, to->data + to->len, 1 << 16);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return error_errno(err, "%s: cannot read", path);
        if (n == 0) return TARE_OK;
        to->len += (size_t)n;
        if (to->len > RUN_BYTES_MAX)
            return error_set(err, TARE_FORMAT, "%s: larger than a run document may be (%zu MiB)", path,
                             RUN_BYTES_MAX >> 20);
    }
}

tare_status run_load(struct run *r, const char *path, tare_error *err)
{
    struct buf text = BUF_INIT;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return error_errno(err, "%s: cannot open", path);
    tare_status s = read_all(fd, path, &text, err);
    close(fd);
    if (s == TARE_OK) s = run_read(r, path, text.data, text.len, err);
    buf_release(&text);
    return s;
}

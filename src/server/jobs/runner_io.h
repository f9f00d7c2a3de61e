/* SPDX-License-Identifier: MIT
 * runner_io.h - how a server and its runner talk: frames over a socket pair of one machine and one program. */
#ifndef SERVER_RUNNER_IO_H
#define SERVER_RUNNER_IO_H

#include "server/jobs/runner.h"

enum frame_kind { FRAME_JOB = 1, FRAME_CANCEL, FRAME_DOCUMENT, FRAME_END };
struct frame {
    uint32_t kind, size;
};
enum { FRAME_MAX = 64 << 20 };

bool io_read(int fd, void *bytes, size_t n); /* all of it; false: the end, or an error */
bool io_send(int fd, enum frame_kind kind, const struct buf *body);
bool io_receive(int fd, struct frame *head, struct buf *body); /* body is cleared before */

/* The runner's whole life. */
_Noreturn void runner_live(int sock, const struct operations *ops, const char *hidden);

#endif

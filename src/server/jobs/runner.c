/* SPDX-License-Identifier: MIT
 * runner.c - the server's side of runner.h, and the frames. */
#include "server/jobs/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/jobs/runner_io.h"

/* ---- frames ---- */

/* All of it; no SIGPIPE. */
static bool io_write(int fd, const void *bytes, size_t n)
{
    for (const char *at = bytes; n > 0;) {
        ssize_t got = send(fd, at, n, MSG_NOSIGNAL);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

bool io_read(int fd, void *bytes, size_t n)
{
    for (char *at = bytes; n > 0;) {
        ssize_t got = recv(fd, at, n, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

bool io_send(int fd, enum frame_kind kind, const struct buf *body)
{
    struct frame head = {kind, (uint32_t)body->len};
    return !body->failed && body->len <= FRAME_MAX && io_write(fd, &head, sizeof head) &&
           io_write(fd, body->data, body->len);
}

bool io_receive(int fd, struct frame *head, struct buf *body)
{
    buf_clear(body);
    if (!io_read(fd, head, sizeof *head) || head->size > FRAME_MAX || buf_reserve(body, head->size) < 0 ||
        (head->size && !io_read(fd, body->data, head->size)))
        return false;
    body->len = head->size;
    if (head->size) body->data[body->len] = 0;
    return true;
}

/* ---- starting ---- */

static bool drop_root(uid_t uid)
{
    if (geteuid() != 0) return true;
    return setgroups(0, NULL) == 0 && setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0;
}

/* Files of the server are none of its business: its socket becomes file 3, all else but messages is closed. */
static _Noreturn void begin(int sock, const struct operations *ops, const char *hidden)
{
    enum { SOCK = 3 };
    prctl(PR_SET_NAME, "tare-runner");
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || (sock != SOCK && dup2(sock, SOCK) < 0))
        _exit(1);
    if (syscall(SYS_close_range, (unsigned)SOCK + 1, ~0U, 0U) < 0)
        for (int fd = SOCK + 1; fd < 65536; fd++) close(fd);
    fcntl(SOCK, F_SETFD, FD_CLOEXEC);
    if (!drop_root((uid_t)ops->uid)) _exit(1);
    runner_live(SOCK, ops, hidden);
}

tare_status runner_start(struct runner *out, const struct operations *ops, const char *hidden,
                         tare_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return error_errno(err, "no socket for the process that runs operations");
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        begin(pair[1], ops, hidden);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return error_errno(err, "the process that runs operations cannot be started");
    }
    *out = (struct runner){pid, pair[0]};
    return TARE_OK;
}

void runner_stop(struct runner *r)
{
    if (r->sock >= 0) close(r->sock);
    r->sock = -1;
    while (r->pid > 0 && waitpid(r->pid, NULL, 0) < 0 && errno == EINTR) continue;
    r->pid = 0;
}

/* ---- a job ---- */

static void put_sized(struct buf *b, const void *bytes, size_t n)
{
    uint32_t size = (uint32_t)n;
    buf_add(b, &size, sizeof size);
    buf_add(b, bytes, n);
}

tare_status runner_send(struct runner *r, const struct job_request *job, tare_error *err)
{
    struct buf body = BUF_INIT;
    uint32_t n = (uint32_t)job->n_files;
    buf_add(&body, &job->operation, sizeof job->operation);
    buf_add(&body, &n, sizeof n);
    put_sized(&body, job->json, job->n);
    for (size_t i = 0; i < job->n_files; i++) {
        buf_add(&body, job->files[i].name, sizeof job->files[i].name);
        put_sized(&body, job->files[i].text.data, job->files[i].text.len);
    }
    tare_status s = buf_status(&body, err);
    if (s == TARE_OK && !io_send(r->sock, FRAME_JOB, &body))
        s = error_set(err, TARE_IO, "the process that runs operations is gone");
    buf_release(&body);
    return s;
}

void runner_cancel(struct runner *r)
{
    const struct frame head = {FRAME_CANCEL, 0};
    io_write(r->sock, &head, sizeof head);
}

static bool is_whole_end(const struct buf *body, struct job_end *end)
{
    if (body->len < sizeof *end) return false;
    memcpy(end, body->data, sizeof *end);
    return (uint64_t)end->out + end->err + sizeof *end == body->len;
}

tare_status runner_wait(struct runner *r, const struct job_answer *answer, tare_error *err)
{
    enum { NAME = 64 };
    struct buf body = BUF_INIT;
    struct frame head;
    struct job_end end;
    bool ended = false;
    while (!ended && io_receive(r->sock, &head, &body)) {
        if (head.kind == FRAME_DOCUMENT && body.len > NAME) {
            body.data[NAME - 1] = 0;
            answer->document(answer->ctx, body.data, body.data + NAME, body.len - NAME);
        } else if (head.kind == FRAME_END && is_whole_end(&body, &end)) {
            const char *text = body.data + sizeof end;
            ended = true;
            struct buf out = BUF_INIT, said = BUF_INIT;
            buf_add(&out, text, end.out);
            buf_add(&said, text + end.out, end.err);
            end.failed_at[sizeof end.failed_at - 1] = 0;
            answer->ended(answer->ctx, &end, out.data, said.data);
            buf_release(&out);
            buf_release(&said);
        }
    }
    buf_release(&body);
    return ended ? TARE_OK : error_set(err, TARE_IO, "the process that runs operations is gone");
}

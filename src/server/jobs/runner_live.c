/* SPDX-License-Identifier: MIT
 * runner_live.c - what the runner does: one job after the other, each in a folder of its own that is gone afterwards.
 * Has one thread. Never trusts what a job left behind: files are opened without following links, when nobody is left
 * who could change them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file.h"
#include "server/jobs/runner_io.h"
#include "server/jobs/runner_tree.h"

struct living {
    int sock;
    const struct operations *ops;
    const char *hidden;
    struct confine_state *shared;
};

struct job {
    struct living *in;
    struct job_end end;
    struct buf out, err;
    int fd_out, fd_err, pidfd;
    pid_t pid;
    bool orphan; /* the server is gone */
    uint64_t until_ms;
    unsigned asked; /* 0: nobody asked it to end, 1: TERM was sent, 2: KILL */
};

static uint64_t now_ms(void)
{
    return clock_raw_ns() / 1000000;
}

/* ---- ending a job ---- */

static void ask_to_end(struct job *j)
{
    if (j->asked == 0) {
        kill(-j->pid, SIGTERM); /* the leader is not waited for yet: the group cannot be another's */
        j->until_ms = now_ms() + TERM_WAIT_MS;
        j->asked = 1;
        return;
    }
    if (j->pidfd >= 0) syscall(SYS_pidfd_send_signal, j->pidfd, SIGKILL, NULL, 0U);
    kill(-j->pid, SIGKILL);
    j->until_ms = now_ms() + 100;
    j->asked = 2;
}

/* Without a namespace of processes some may have left the group: all of them are this process's children now. */
static void kill_strays(void)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    for (int round = 0; round < 10000; round++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
        if (fd >= 0) close(fd);
        if (n <= 0) break;
        text[n] = 0;
        for (char *at = text, *end; *at; at = end + strspn(end, " ")) {
            long pid = strtol(at, &end, 10);
            if (end == at) break;
            if (pid > 1) kill((pid_t)pid, SIGKILL);
        }
        while (waitpid(-1, NULL, 0) > 0) continue;
    }
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
}

/* ---- while it runs ---- */

/* What goes beyond the limit is read and thrown away: a program that waits for room would not end. False: its end. */
static bool take_output(struct job *j, int fd, struct buf *to)
{
    char piece[65536];
    ssize_t n = read(fd, piece, sizeof piece);
    if (n < 0) return errno == EINTR || errno == EAGAIN;
    size_t room = OUTPUT_MAX - j->out.len - j->err.len, kept = (size_t)n < room ? (size_t)n : room;
    buf_add(to, piece, kept);
    j->end.dropped += (size_t)n - kept;
    return n > 0;
}

static void hear_server(struct job *j)
{
    struct frame head;
    if (!io_read(j->in->sock, &head, sizeof head)) {
        j->orphan = true;
        j->asked = 1; /* nobody is left to tell: at once */
        ask_to_end(j);
    } else if (head.kind == FRAME_CANCEL && !j->asked) {
        j->end.cancelled = true;
        ask_to_end(j);
    }
}

static void close_once(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static bool has_ended(struct job *j)
{
    return waitpid(j->pid, NULL, WNOHANG) == j->pid;
}

static void watch_job(struct job *j)
{
    for (;;) {
        uint64_t now = now_ms();
        struct pollfd at[] = {{j->pidfd, POLLIN, 0},
                              {j->fd_out, POLLIN, 0},
                              {j->fd_err, POLLIN, 0},
                              {j->orphan ? -1 : j->in->sock, POLLIN, 0}};
        if (now >= j->until_ms) {
            j->end.timed_out |= !j->asked;
            ask_to_end(j);
            now = now_ms();
        }
        uint64_t wait = j->until_ms > now ? j->until_ms - now : 0;
        if (j->pidfd < 0 && wait > 50) wait = 50; /* old kernels: looked at now and then */
        if (wait > 60000) wait = 60000;
        if (poll(at, 4, (int)wait) < 0 && errno != EINTR) _exit(1);
        if (at[1].revents && !take_output(j, j->fd_out, &j->out)) close_once(&j->fd_out);
        if (at[2].revents && !take_output(j, j->fd_err, &j->err)) close_once(&j->fd_err);
        if (at[3].revents) hear_server(j);
        if ((j->pidfd < 0 || at[0].revents) && has_ended(j)) break;
    }
    kill_strays();
    for (int i = 0; i < OUTPUT_MAX / 4096; i++) { /* what was in the pipes */
        struct pollfd at[] = {{j->fd_out, POLLIN, 0}, {j->fd_err, POLLIN, 0}};
        if (poll(at, 2, 0) <= 0) break;
        if (at[0].revents && !take_output(j, j->fd_out, &j->out)) close_once(&j->fd_out);
        if (at[1].revents && !take_output(j, j->fd_err, &j->err)) close_once(&j->fd_err);
    }
}

static int input_of(const struct buf *text)
{
    int fd = memfd_create("tare-request", MFD_CLOEXEC);
    if (fd >= 0 && file_write_all(fd, text->data, text->len, "request", NULL) == TARE_OK &&
        lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    if (fd >= 0) close(fd);
    return -1;
}

static bool start(struct job *j, const struct operation *op, const struct call *c, const char *folder)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1}, in = input_of(&c->input);
    j->pidfd = -1;
    j->fd_out = j->fd_err = -1;
    if (in >= 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0) {
        struct confine_spec spec = {op, c->argv, folder, j->in->hidden, in, out[1], err[1]};
        memset(j->in->shared, 0, sizeof *j->in->shared);
        j->until_ms = now_ms() + op->limits.timeout_s * 1000;
        j->pid = confine_start(&spec, j->in->shared);
        if (j->pid > 0) {
            j->pidfd = (int)syscall(SYS_pidfd_open, j->pid, 0U);
            j->fd_out = out[0];
            j->fd_err = err[0];
            out[0] = err[0] = -1;
        }
    }
    int why = errno;
    for (int i = 0; i < 2; i++) {
        close_once(&out[i]);
        close_once(&err[i]);
    }
    close_once(&in);
    errno = why;
    return j->pid > 0;
}

/* ---- before and after ---- */

struct unpack {
    const char *at;
    size_t left;
};

static const char *take(struct unpack *u, size_t n)
{
    const char *at = u->at;
    if (n > u->left) return NULL;
    u->at += n;
    u->left -= n;
    return at;
}

static const char *take_sized(struct unpack *u, uint32_t *n)
{
    const char *size = take(u, sizeof *n);
    if (!size) return NULL;
    memcpy(n, size, sizeof *n);
    return take(u, *n);
}

static bool write_files(struct unpack *u, uint32_t n, int folder)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t size;
        const char *name = take(u, 64), *text = name ? take_sized(u, &size) : NULL;
        if (!text || name[63] || strchr(name, '/')) return false;
        int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        bool good = fd >= 0 && file_write_all(fd, text, size, name, NULL) == TARE_OK;
        if (fd >= 0) close(fd);
        if (!good) return false;
    }
    return true;
}

static void send_document(void *ctx, const char *name, const struct buf *text)
{
    struct living *in = ctx;
    struct buf body = BUF_INIT;
    char field[64] = "";
    snprintf(field, sizeof field, "%s", name);
    buf_add(&body, field, sizeof field);
    buf_add(&body, text->data, text->len);
    io_send(in->sock, FRAME_DOCUMENT, &body);
    buf_release(&body);
}

static void send_end(struct job *j)
{
    struct buf body = BUF_INIT;
    j->end.state = *j->in->shared;
    if (j->end.state.failed_at)
        snprintf(j->end.failed_at, sizeof j->end.failed_at, "%s", j->end.state.failed_at);
    j->end.state.failed_at = NULL;
    j->end.out = (uint32_t)j->out.len;
    j->end.err = (uint32_t)j->err.len;
    buf_add(&body, &j->end, sizeof j->end);
    buf_add(&body, j->out.data, j->out.len);
    buf_add(&body, j->err.data, j->err.len);
    io_send(j->in->sock, FRAME_END, &body);
    buf_release(&body);
}

/* The whole of a job but its folder. */
static void run_in(struct job *j, struct unpack *u, const char *folder, int dir)
{
    struct call c = CALL_INIT;
    tare_error why = TARE_ERROR_INIT;
    uint32_t head[2] = {0, 0}, n = 0;
    const char *first = take(u, sizeof head), *json = first ? take_sized(u, &n) : NULL;
    if (first) memcpy(head, first, sizeof head);
    const struct operation *op = json && head[0] < j->in->ops->n ? &j->in->ops->at[head[0]] : NULL;
    uint64_t began = now_ms();
    errno = EINVAL;
    if (op && call_make(&c, op, json, n, &why) == TARE_OK && write_files(u, head[1], dir) &&
        start(j, op, &c, folder)) {
        watch_job(j);
    } else {
        j->in->shared->failed = errno;
        j->in->shared->failed_at = "its start";
    }
    j->end.wall_ms = now_ms() - began;
    close_once(&j->fd_out);
    close_once(&j->fd_err);
    close_once(&j->pidfd);
    call_release(&c);
}

/* Below TMPDIR, or /tmp: the first may be the server's alone, and jobs have a user of their own. -1: neither. */
static int make_folder(char folder[300])
{
    const char *base = secure_getenv("TMPDIR");
    snprintf(folder, 300, "%.200s/tare-job-XXXXXX", base && base[0] == '/' ? base : "/tmp");
    if (!mkdtemp(folder)) {
        snprintf(folder, 300, "/tmp/tare-job-XXXXXX");
        if (!mkdtemp(folder)) return -1;
    }
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool run_job(struct living *in, const struct buf *body)
{
    struct unpack u = {body->data, body->len};
    struct job j = {.in = in, .out = BUF_INIT, .err = BUF_INIT, .fd_out = -1, .fd_err = -1, .pidfd = -1};
    char folder[300];
    memset(in->shared, 0, sizeof *in->shared);
    int dir = make_folder(folder);
    if (dir >= 0) {
        run_in(&j, &u, folder, dir);
        if (!j.orphan) tree_documents(dir, RUNNER_RESULTS, send_document, in);
        tree_remove(folder, dir);
    } else {
        in->shared->failed = errno;
        in->shared->failed_at = "its folder";
    }
    if (!j.orphan) send_end(&j);
    buf_release(&j.out);
    buf_release(&j.err);
    return !j.orphan;
}

_Noreturn void runner_live(int sock, const struct operations *ops, const char *hidden)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE,
                                  SIGQUIT}; /* the server's: it says when to end */
    struct living in = {sock, ops, hidden, NULL};
    struct frame head;
    struct buf body = BUF_INIT;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
    umask(077);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    in.shared = mmap(NULL, sizeof *in.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (in.shared == MAP_FAILED) _exit(1);
    while (io_receive(sock, &head, &body)) /* a cancel that came too late is none */
        if (head.kind == FRAME_JOB && !run_job(&in, &body)) break;
    _exit(0);
}

/* SPDX-License-Identifier: MIT
 * ort_find.c - see ort_find.h. */
#include "subject/ort_find.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/buf.h"
#include "core/clock.h"
#include "core/file.h"

enum { PYTHON_TIMEOUT_MS = 3000 };

struct search {
    struct ort_candidates *out;
    const char *source;
    bool named;
    tare_status status; /* sticky: only memory can run out */
    tare_error *err;
};

void ort_candidates_release(struct ort_candidates *c)
{
    for (size_t i = 0; i < c->items.n; i++) mem_free(c->items.items[i].path);
    vec_release(&c->items);
}

/* A path of parts; one that is too long becomes "", which nothing matches. */
static __attribute__((format(printf, 2, 3))) void path_set(char out[PATH_MAX], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(out, PATH_MAX, format, args);
    va_end(args);
    if (n < 0 || n >= PATH_MAX) out[0] = 0;
}

/* ---- one file ---- */

/* The version that follows `mark` in a text: digits and dots. */
static bool version_after(const char *text, size_t n, char out[32])
{
    size_t len = 0;
    while (len < n && len < 31 && ((text[len] >= '0' && text[len] <= '9') || text[len] == '.')) len++;
    while (len && text[len - 1] == '.') len--;
    if (len < 3) return false;
    memcpy(out, text, len);
    out[len] = 0;
    return ort_version_minor(out) >= 0;
}

/* From the name (libonnxruntime.so.1.23.2), else from the version of its symbols (VERS_1.23.2). */
static void find_version(const char *path, char out[32])
{
    const char *mark = strstr(path, "libonnxruntime.so.");
    struct file_view view = FILE_VIEW_INIT;
    out[0] = 0;
    if (mark && version_after(mark + 18, strlen(mark + 18), out)) return;
    out[0] = 0;
    if (file_map(path, &view, NULL) < 0) return;
    const unsigned char *at = memmem(view.data, view.size, "VERS_1.", 7);
    if (at && !version_after((const char *)at + 5, view.size - (size_t)(at + 5 - view.data), out)) out[0] = 0;
    file_unmap(&view);
}

/* Fills version and why_not. */
static void judge_candidate(struct ort_candidate *c)
{
    struct stat st;
    const char *why = "";
    if (stat(c->path, &st) < 0 || !S_ISREG(st.st_mode))
        why = "no such file";
    else if (access(c->path, R_OK) < 0)
        why = "not readable";
    else if (strstr(c->path, "pybind11_state"))
        why = "Python packages before 1.19 hide the C interface: upgrade to 1.19 or newer";
    else
        find_version(c->path, c->version);
    snprintf(c->why_not, sizeof c->why_not, "%s", why);
    if (c->version[0] && ort_version_minor(c->version) < ORT_MINOR_MIN)
        snprintf(c->why_not, sizeof c->why_not, "too old, 1.%d or newer is needed", ORT_MINOR_MIN);
}

/* Links are resolved first, so that a library which is found under several names is listed once, where it
 * was found first. Those that cannot be used are kept as well, with the cause: when none is left, the
 * error names them. */
static void add_file(struct search *s, const char *path)
{
    char full[PATH_MAX];
    struct ort_candidate c = {.source = s->source, .named = s->named};
    const char *use = realpath(path, full) ? full : path;
    for (size_t i = 0; i < s->out->items.n; i++) {
        if (strcmp(s->out->items.items[i].path, use) == 0) return;
    }
    if (s->status < 0) return;
    c.path = mem_strdup(use);
    if (!c.path) {
        s->status = error_set(s->err, TARE_NOMEM, "out of memory to look for ONNX Runtime");
        return;
    }
    judge_candidate(&c);
    s->status = vec_push(&s->out->items, c, s->err);
    if (s->status < 0) mem_free(c.path);
}

/* Add all that match; how many. Later versions first. */
static size_t add_glob(struct search *s, const char *pattern)
{
    glob_t g = {0};
    size_t n = 0;
    if (glob(pattern, 0, NULL, &g) == 0) {
        for (size_t i = g.gl_pathc; i-- > 0;) add_file(s, g.gl_pathv[i]);
        n = g.gl_pathc;
    }
    globfree(&g);
    return n;
}

/* ---- the places ---- */

/* A name given by the user: a library, or a folder with one. */
static void add_named(struct search *s, const char *name)
{
    char pattern[PATH_MAX];
    struct stat st;
    if (stat(name, &st) < 0 || !S_ISDIR(st.st_mode)) {
        add_file(s, name);
        return;
    }
    path_set(pattern, "%s/libonnxruntime.so*", name);
    if (add_glob(s, pattern)) return;
    path_set(pattern, "%s/lib/libonnxruntime.so*", name);
    if (!add_glob(s, pattern)) add_file(s, pattern); /* its reason: no such file */
}

/* The packages of one Python: PREFIX/lib/python3.11/site-packages. */
static void add_packages(struct search *s, const char *packages)
{
    char pattern[PATH_MAX];
    path_set(pattern, "%s/onnxruntime/capi/libonnxruntime.so*", packages);
    if (add_glob(s, pattern)) return;
    path_set(pattern, "%s/onnxruntime/capi/onnxruntime_pybind11_state*.so", packages);
    add_glob(s, pattern);
}

static void add_prefix(struct search *s, const char *prefix)
{
    static const char *const below[] = {"lib/python3*/site-packages", "lib64/python3*/site-packages",
                                        "lib/python3*/dist-packages", "local/lib/python3*/dist-packages",
                                        "lib/python3/dist-packages"};
    char pattern[PATH_MAX];
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        path_set(pattern, "%s/%s", prefix, below[i]);
        add_packages(s, pattern);
    }
}

static bool find_python(const char *path, char out[PATH_MAX])
{
    while (path && *path) {
        size_t len = strcspn(path, ":");
        if (len && (size_t)snprintf(out, PATH_MAX, "%.*s/python3", (int)len, path) < PATH_MAX &&
            access(out, X_OK) == 0)
            return true;
        path += len + (path[len] == ':');
    }
    return false;
}

/* Whether a Python lives at PREFIX/bin: then its packages are where we look anyway. */
static bool has_layout(const char *prefix)
{
    char pattern[PATH_MAX];
    glob_t g = {0};
    path_set(pattern, "%s/lib/python3*", prefix);
    bool any = glob(pattern, 0, NULL, &g) == 0;
    globfree(&g);
    return any;
}

/* Wait at most until `end`, then end it. */
static void reap(pid_t pid, uint64_t end)
{
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (clock_raw_ns() >= end) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return;
        }
        poll(NULL, 0, 5);
    }
}

static size_t read_until(int fd, char *out, size_t size, uint64_t end)
{
    size_t len = 0;
    while (len < size - 1) {
        uint64_t now = clock_raw_ns();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (now >= end || poll(&p, 1, (int)((end - now) / 1000000 + 1)) <= 0) break;
        ssize_t n = read(fd, out + len, size - 1 - len);
        if (n <= 0) break;
        len += (size_t)n;
    }
    out[len] = 0;
    return len;
}

/* Ask a Python whose files are somewhere else (a wrapper script): one folder of packages per line. */
static bool ask_python(const char *python, char *out, size_t size)
{
    static char code[] = "import sysconfig as s;print(s.get_path('purelib'));print(s.get_path('platlib'))";
    static char isolated[] = "-I", run[] = "-c";
    char *argv[] = {(char *)(uintptr_t)python, isolated, run, code, NULL};
    int fds[2];
    pid_t pid;
    posix_spawn_file_actions_t actions;
    if (pipe2(fds, O_CLOEXEC) < 0) return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int rc = posix_spawn(&pid, python, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    uint64_t end = clock_raw_ns() + (uint64_t)PYTHON_TIMEOUT_MS * 1000000;
    size_t n = rc == 0 ? read_until(fds[0], out, size, end) : 0;
    close(fds[0]);
    if (rc == 0) reap(pid, end);
    return n > 0;
}

/* The python3 of $PATH: by its place where that tells, else by asking it. */
static void add_python(struct search *s, const struct ort_places *p)
{
    char python[PATH_MAX], prefix[PATH_MAX], answer[4096];
    if (!find_python(p->path, python)) return;
    path_set(prefix, "%s", python);
    for (int up = 0; up < 2; up++) { /* less /bin/python3 */
        char *slash = strrchr(prefix, '/');
        if (slash) *slash = 0;
    }
    if (has_layout(prefix)) {
        char local[PATH_MAX] = "";
        if (p->home) path_set(local, "%s/.local", p->home);
        if (p->home) add_prefix(s, local);
        add_prefix(s, prefix);
    } else if (ask_python(python, answer, sizeof answer)) {
        char *save = NULL;
        for (char *l = strtok_r(answer, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) add_packages(s, l);
    }
}

#if defined(__aarch64__)
#define NODE_ARCH "arm64"
#else
#define NODE_ARCH "x64"
#endif

/* node_modules of the project and of every folder above it; the nearest that has it. */
static void add_node(struct search *s, const char *project)
{
    char at[PATH_MAX], pattern[PATH_MAX];
    if (!realpath(project, at)) return;
    for (;;) {
        path_set(pattern, "%s/node_modules", at);
        bool ours = !file_is_strangers(pattern);
        path_set(pattern,
                 "%s/node_modules/onnxruntime-node/bin/napi-v*/linux/" NODE_ARCH "/libonnxruntime.so*", at);
        if (ours && add_glob(s, pattern)) return;
        char *slash = strrchr(at, '/');
        if (!slash) return;
        *slash = 0;
    }
}

/* What ld.so finds by name, which it tells only by loading it. */
static void add_loader(struct search *s)
{
    static const char *const names[] = {"libonnxruntime.so.1", "libonnxruntime.so"};
    for (size_t i = 0; i < 2; i++) {
        struct link_map *map = NULL;
        void *h = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
        if (!h) continue;
        if (dlinfo(h, RTLD_DI_LINKMAP, (void *)&map) == 0 && map && map->l_name[0]) add_file(s, map->l_name);
        dlclose(h);
    }
}

static bool any_usable(const struct ort_candidates *c)
{
    for (size_t i = 0; i < c->items.n; i++) {
        if (!c->items.items[i].why_not[0]) return true;
    }
    return false;
}

/* The places that nobody named, in order. */
static void search_places(struct search *s, const struct ort_places *p)
{
    char venv[PATH_MAX];
    const char *project = p->project ? p->project : ".";
    s->source = "$VIRTUAL_ENV";
    if (p->virtual_env) add_prefix(s, p->virtual_env);
    s->source = "the project's .venv";
    path_set(venv, "%s/.venv", project);
    if (!file_is_strangers(venv)) add_prefix(s, venv); /* what is found is loaded */
    s->source = "python3";
    add_python(s, p);
    s->source = "node_modules";
    add_node(s, project);
    if (p->no_system) return;
    s->source = "the loader's paths";
    if (!any_usable(s->out)) add_loader(s);
    s->source = "/usr/local/lib";
    add_glob(s, "/usr/local/lib/libonnxruntime.so*");
    s->source = "/opt";
    add_glob(s, "/opt/onnxruntime*/lib/libonnxruntime.so*");
}

/* What the user names comes before what is found, and with --ort nothing is searched for: another library
 * in its place would be a surprise. */
tare_status ort_find(struct ort_candidates *out, const struct ort_places *p, tare_error *err)
{
    const char *const names[] = {p->chosen, p->tare_ort_lib, p->ort_dylib_path};
    static const char *const sources[] = {"--ort", "$TARE_ORT_LIB", "$ORT_DYLIB_PATH"};
    struct ort_candidates found = ORT_CANDIDATES_INIT;
    struct search s = {.out = &found, .named = true, .err = err};
    for (size_t i = 0; i < 3; i++) {
        s.source = sources[i];
        if (names[i] && names[i][0]) add_named(&s, names[i]);
    }
    s.named = false;
    if (!p->chosen) search_places(&s, p);
    if (s.status < 0) {
        ort_candidates_release(&found);
        return s.status;
    }
    *out = found;
    return TARE_OK;
}

/* ---- finding and loading ---- */

static tare_status nothing_found(const struct ort_candidates *c, tare_error *err)
{
    struct buf b = BUF_INIT;
    buf_add_str(&b, "no usable ONNX Runtime");
    for (size_t i = 0; i < c->items.n && i < 3; i++) {
        const struct ort_candidate *x = &c->items.items[i];
        buf_printf(&b, "%s %.120s (%s): %s", i ? ";" : ":", x->path, x->source, x->why_not);
    }
    if (c->items.n == 0)
        buf_add_str(&b, " is to be found in Python environments, node_modules or the system");
    buf_add_str(&b, ". Get one with: pip install onnxruntime, or name one with --ort PATH");
    tare_status s = buf_status(&b, err);
    if (s == TARE_OK) s = error_set(err, TARE_UNSUPPORTED, "%s", b.data);
    buf_release(&b);
    return s;
}

static tare_status open_first(struct ort **out, struct ort_candidates *c, tare_error *err)
{
    for (size_t i = 0; i < c->items.n; i++) {
        struct ort_candidate *x = &c->items.items[i];
        tare_error why = TARE_ERROR_INIT;
        tare_status s = x->why_not[0] ? error_set(&why, TARE_UNSUPPORTED, "%s: %s", x->path, x->why_not)
                                      : ort_open(out, x->path, &why);
        if (s == TARE_OK) {
            snprintf(x->version, sizeof x->version, "%s", (*out)->version);
            return TARE_OK;
        }
        if (x->named || s == TARE_NOMEM) return error_set(err, s, "%s (%s)", why.text, x->source);
        if (!x->why_not[0]) snprintf(x->why_not, sizeof x->why_not, "%.150s", why.text);
    }
    return nothing_found(c, err);
}

tare_status ort_open_found(struct ort **out, const struct ort_places *p, struct ort_candidates *found,
                           tare_error *err)
{
    struct ort_candidates own = ORT_CANDIDATES_INIT;
    struct ort_candidates *c = found ? found : &own;
    tare_status s = ort_find(c, p, err);
    if (s == TARE_OK) s = open_first(out, c, err);
    ort_candidates_release(&own);
    return s;
}

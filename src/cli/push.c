/* SPDX-License-Identifier: MIT
 * push.c - see push.h. */
#include "cli/push.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/client.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"

/* A command that measured something waits no longer than this for a server, and sends what waits no longer. */
#define ANSWER_MS 10000u
#define CATCH_UP_NS UINT64_C(10000000000)

/* ---- who, and where to ---- */

/* tare_SCOPES_ID_SECRET: the id may be shown, and is all that is kept of a token. */
static void token_id(char out[16])
{
    const char *token = history_token(), *secret = token ? strrchr(token, '_') : NULL, *id = secret;
    while (id && id > token && id[-1] != '_') id--;
    size_t n = id ? (size_t)(secret - id) : 0;
    bool plain = n > 0 && n < 16 && strspn(id, "0123456789abcdef") >= n;
    snprintf(out, 16, "%.*s", plain ? (int)n : 4, plain ? id : "none");
}

int push_check(struct cli *cli, const struct history_args *a)
{
    struct store *to = NULL;
    if (!a->push && !a->push_must) return 0;
    if (!a->server) return cli_usage_error(cli, "--push: where to? --server URL, or TARE_SERVER");
    tare_status s = push_open(a, &to, &cli->error);
    store_close(to);
    if (s == TARE_INVALID) return cli_usage_error(cli, "--server: %s", cli->error.text);
    return s == TARE_OK ? 0 : cli_fail(cli);
}

tare_status push_open(const struct history_args *a, struct store **out, tare_error *err)
{
    struct store_options o = {.token = history_token(), .wait_ms = ANSWER_MS};
    if (!client_is_url(a->server))
        return error_set(err, TARE_INVALID, "'%.80s' is no URL of a server: http:// or https:// stands first",
                         a->server);
    return store_open(out, a->server, &o, err);
}

/* "tare-results/unsent/http%3A%2F%2F127.0.0.1%3A8321" */
static tare_status folder_of(const struct history_args *a, const struct store *to, struct buf *out,
                             tare_error *err)
{
    tare_status s = history_path(a, out, err);
    if (s != TARE_OK) return s;
    const char *slash = strrchr(out->data, '/');
    out->len = slash ? (size_t)(slash + 1 - out->data) : 0;
    buf_add_str(out, "unsent/");
    client_escape(out, to->where);
    return buf_status(out, err);
}

/* ---- one ---- */

tare_status push_text(struct store *to, struct store_body text, bool *added, tare_error *err)
{
    struct store_entry e = {.body = text};
    return to->ops->add(to, &e, added, err);
}

/* What a server will never take is kept, but not sent again. */
static void set_aside(struct cli *cli, const char *path, const tare_error *why, struct push_result *r)
{
    char aside[4200];
    snprintf(aside, sizeof aside, "%s.refused", path);
    r->refused++;
    if (rename(path, aside) != 0) cli_warn(cli, "%s: cannot be renamed: %s", path, strerror(errno));
    cli_warn(cli, "%s; it is kept as %s", why->text, aside);
}

/* `name` begins with the id of the trace's run; `text` is where it lies. */
static tare_status send_trace(struct store *to, const char *name, const struct file_view *text, bool *added,
                              tare_error *err)
{
    char run[ULID_SIZE], path[4096];
    size_t n = text->size < sizeof path ? text->size : sizeof path - 1;
    memcpy(path, text->data, n);
    path[n] = 0;
    snprintf(run, sizeof run, "%s", name);
    tare_status s = push_trace(to, run, path, added, err);
    /* A file that is gone, or is no trace any more, will not come back. */
    if (access(path, R_OK) != 0)
        s = error_set(err, TARE_FORMAT, "the trace of run %s is gone: %s", run, path);
    return s;
}

static tare_status send_file(struct cli *cli, struct store *to, const char *path, struct push_result *r,
                             tare_error *err)
{
    struct file_view file = FILE_VIEW_INIT;
    bool added = false;
    tare_status s = file_map(path, &file, err);
    if (s != TARE_OK) return access(path, F_OK) != 0 ? TARE_OK : s; /* another tare sent it meanwhile */
    if (str_ends_with(path, ".trace"))
        s = send_trace(to, str_file_name(path), &file, &added, err);
    else
        s = push_text(to, (struct store_body){file.data, file.size}, &added, err);
    file_unmap(&file);
    if (s == TARE_FORMAT) {
        set_aside(cli, path, err, r);
        return TARE_OK;
    }
    if (s != TARE_OK) return s;
    unlink(path);
    if (!str_ends_with(path, ".trace")) ++*(added ? &r->sent : &r->there);
    return TARE_OK;
}

/* ---- all that wait ---- */

static int is_waiting(const struct dirent *e)
{
    return e->d_name[0] != '.' && (str_ends_with(e->d_name, ".json") || str_ends_with(e->d_name, ".trace"));
}

/* "01KA...Z.3f1c9a0b77d2.json" */
static bool is_of_token(const char *name)
{
    char id[16], part[32];
    token_id(id);
    snprintf(part, sizeof part, ".%s.", id);
    return strstr(name, part) != NULL;
}

struct pushing {
    struct cli *cli;
    struct store *to;
    const struct push_wish *wish;
    const char *folder;
    uint64_t until_ns;
    struct push_result *r;
};

static void send_named(struct pushing *p, const char *name)
{
    char path[4096];
    bool document = !str_ends_with(name, ".trace"); /* they are what is counted: a trace goes with its own */
    if (!p->wish->any_token && !is_of_token(name)) {
        p->r->others += document;
        return;
    }
    bool late = p->until_ns && instant_now().ns > p->until_ns;
    if (p->r->status == TARE_OK && !late) {
        snprintf(path, sizeof path, "%s/%s", p->folder, name);
        p->r->status = send_file(p->cli, p->to, path, p->r, &p->cli->error);
        if (p->r->status == TARE_OK) return;
    }
    p->r->waits += document;
}

void push_waiting(struct cli *cli, const struct history_args *a, struct store *to, const struct push_wish *w,
                  struct push_result *r)
{
    struct buf folder = BUF_INIT;
    struct dirent **all = NULL;
    *r = (struct push_result){.status = folder_of(a, to, &folder, &cli->error)};
    struct pushing p = {cli, to, w, folder.data, w->most_ns ? instant_now().ns + w->most_ns : 0, r};
    int n = r->status == TARE_OK ? scandir(folder.data, &all, is_waiting, alphasort) : 0;
    if (n < 0 && errno != ENOENT) r->status = error_errno(&cli->error, "%s: cannot be read", folder.data);
    if (w->first && n > 0) send_named(&p, w->first);
    for (int i = 0; i < n; i++) {
        if (!w->first || strcmp(all[i]->d_name, w->first) != 0) send_named(&p, all[i]->d_name);
        mem_free_libc(all[i]);
    }
    mem_free_libc(all);
    buf_release(&folder);
}

/* ---- a run that was just made ---- */

/* Where the trace lies, beside the document that it belongs to; its bytes stay where they are. */
static tare_status keep_trace_first(const char *trace, const char *document, tare_error *err)
{
    char path[4096];
    char *real = realpath(trace, NULL);
    if (!real) return TARE_OK; /* it was told already that there is none */
    snprintf(path, sizeof path, "%.*s.trace", (int)(strlen(document) - strlen(".json")), document);
    tare_status s = file_write_atomic(path, real, strlen(real), 0, err);
    mem_free_libc(real);
    return s;
}

static tare_status keep_first(const struct history_args *a, const struct store *to, const struct run *run,
                              struct buf *name, tare_error *err)
{
    struct buf folder = BUF_INIT, text = BUF_INIT;
    char id[16], path[4096];
    token_id(id);
    buf_printf(name, "%s.%s.json", run->id, id);
    tare_status s = folder_of(a, to, &folder, err);
    if (s == TARE_OK) s = buf_status(name, err);
    if (s == TARE_OK) s = run_write(run, &text, err);
    if (s == TARE_OK) s = file_make_folders(folder.data, err);
    snprintf(path, sizeof path, "%s/%s", folder.data, name->data);
    if (s == TARE_OK) s = file_write_atomic(path, text.data, text.len, 0, err);
    if (s == TARE_OK && a->trace) s = keep_trace_first(a->trace, path, err);
    buf_release(&folder);
    buf_release(&text);
    return s;
}

static void tell_result(struct cli *cli, const struct store *to, const struct push_result *r)
{
    unsigned long long done = r->sent + r->there, waits = r->waits;
    if (r->status != TARE_OK)
        cli_warn(cli, "not sent: %s; %llu %s, and %s with the next push (tare push)", cli->error.text, waits,
                 waits == 1 ? "document waits" : "documents wait", waits == 1 ? "goes" : "go");
    else if (done && waits)
        cli_note(cli, "sent to %s; %llu more wait (tare push)", to->where, waits);
    else if (done > 1)
        cli_note(cli, "sent to %s, with %llu that waited", to->where, done - 1);
    else if (done)
        cli_note(cli, "sent to %s", to->where);
}

tare_status push_run(struct cli *cli, const struct history_args *a, const struct run *run)
{
    struct store *to = NULL;
    struct buf name = BUF_INIT;
    struct push_result r = {0};
    if (!a->push && !a->push_must) return TARE_OK;
    tare_status s = push_open(a, &to, &cli->error);
    if (s == TARE_OK) s = keep_first(a, to, run, &name, &cli->error);
    if (s == TARE_OK) {
        push_waiting(cli, a, to, &(struct push_wish){.first = name.data, .most_ns = CATCH_UP_NS}, &r);
        if (!a->quiet || r.status != TARE_OK) tell_result(cli, to, &r);
        s = r.refused && r.status == TARE_OK ? TARE_FORMAT : r.status;
    } else {
        cli_warn(cli, "not sent: %s", cli->error.text);
    }
    store_close(to);
    buf_release(&name);
    if (s == TARE_OK || !a->push_must) return TARE_OK;
    return error_set(&cli->error, TARE_IO, "--push-must: the run is not at the server");
}

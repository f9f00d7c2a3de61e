/* SPDX-License-Identifier: MIT
 * cmd_push.c - `tare push`: what waits to be sent, documents that are named, or a whole history, to a server. */
#include <string.h>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/push.h"
#include "core/file.h"
#include "core/str.h"

struct push_command {
    struct history_args where;
    bool all, any_token, json;
    const char *run;
};

struct sending {
    struct cli *cli;
    struct store *from, *to;
    struct push_result *r;
    const char *run; /* of traces that are named; NULL: see beside them */
};

/* A document that is refused for good is named, and the rest goes on. */
static tare_status send_text(struct sending *s, const char *name, struct store_body text)
{
    bool added = false;
    tare_error *err = &s->cli->error;
    tare_status status = push_text(s->to, text, &added, err);
    if (status == TARE_FORMAT) {
        s->r->refused++;
        cli_warn(s->cli, "%s: %s", name, err->text);
        return TARE_OK;
    }
    if (status == TARE_OK) ++*(added ? &s->r->sent : &s->r->there);
    return status;
}

static tare_status send_kept(void *ctx, const struct store_run *run, tare_error *err)
{
    struct sending *s = ctx;
    struct buf text = BUF_INIT;
    tare_status status = store_document(s->from, run->id, &text, err);
    if (status == TARE_OK) status = send_text(s, run->id, (struct store_body){text.data, text.len});
    buf_release(&text);
    return status;
}

/* The run of a trace: --run, or the document of the same name beside it, as tare run leaves them. */
static tare_status run_of_trace(const struct sending *s, const char *path, char id[ULID_SIZE],
                                tare_error *err)
{
    struct run run;
    char beside[4096];
    size_t n = strlen(path) - (str_ends_with(path, ".tare") ? strlen(".tare") : 0);
    if (s->run) {
        snprintf(id, ULID_SIZE, "%s", s->run);
        return TARE_OK;
    }
    snprintf(beside, sizeof beside, "%.*s.json", (int)n, path);
    if (run_load(&run, beside, err) != TARE_OK)
        return error_set(err, TARE_INVALID,
                         "%s: whose trace is it? there is no run document beside it; --run ID", path);
    snprintf(id, ULID_SIZE, "%s", run.id);
    run_release(&run);
    return TARE_OK;
}

static tare_status send_trace(struct sending *s, const char *path)
{
    char id[ULID_SIZE];
    bool added = false;
    tare_error *err = &s->cli->error;
    tare_status status = run_of_trace(s, path, id, err);
    if (status == TARE_OK) status = push_trace(s->to, id, path, &added, err);
    if (status == TARE_OK) ++*(added ? &s->r->sent : &s->r->there);
    return status;
}

/* What is no run document is not sent to find that out. */
static tare_status send_file(struct sending *s, const char *path)
{
    struct run run;
    struct file_view file = FILE_VIEW_INIT;
    tare_error *err = &s->cli->error;
    if (str_ends_with(path, ".tare")) return send_trace(s, path);
    tare_status status = run_load(&run, path, err);
    if (status == TARE_IO) err->status = TARE_INVALID; /* the user named it */
    if (status != TARE_OK) return status;
    run_release(&run);
    status = file_map(path, &file, err);
    if (status == TARE_OK) status = send_text(s, path, (struct store_body){file.data, file.size});
    file_unmap(&file);
    return status;
}

static int send_all(struct cli *cli, const struct push_command *a, struct sending *s)
{
    struct store_filter every = {0};
    int rc = history_open(cli, &a->where, false, &s->from);
    if (rc) return rc;
    s->r->status = s->from->ops->list(s->from, &every, send_kept, s, &cli->error);
    store_close(s->from);
    return 0;
}

/* Text: what was done; what is left is told on stderr. */
static int answer(struct cli *cli, const struct push_command *a, const struct store *to,
                  const struct push_result *r)
{
    struct answer out;
    tare_error why = cli->error;
    cli_answer_begin(cli, &out, a->json);
    answer_str(&out, "server", to->where, NULL);
    answer_uint(&out, "sent", r->sent, "%llu sent", (unsigned long long)r->sent);
    answer_uint(&out, "there", r->there, r->there ? ", %llu there already" : NULL,
                (unsigned long long)r->there);
    answer_uint(&out, "refused", r->refused, r->refused ? ", %llu refused" : NULL,
                (unsigned long long)r->refused);
    answer_uint(&out, "waits", r->waits, r->waits ? ", %llu left" : NULL, (unsigned long long)r->waits);
    answer_uint(&out, "waits_for_another_token", r->others, NULL);
    answer_say(&out, "\n");
    int rc = cli_answer_end(cli, &out);
    if (r->others)
        cli_note(
            cli,
            "%llu wait for another token: set TARE_TOKEN to it, or send them with this one by --any-token",
            (unsigned long long)r->others);
    if (r->status != TARE_OK) {
        cli->error = why;
        return cli_fail(cli);
    }
    return rc == CLI_GOOD && r->refused ? CLI_USAGE : rc;
}

static int push(struct cli *cli, const struct push_command *a, int argc, char **argv)
{
    struct push_result r = {0};
    struct sending s = {.cli = cli, .r = &r, .run = a->run};
    int rc = 0;
    if (push_open(&a->where, &s.to, &cli->error) != TARE_OK) return cli_fail(cli);
    if (a->all)
        rc = send_all(cli, a, &s);
    else if (argc == 0)
        push_waiting(cli, &a->where, s.to, &(struct push_wish){.any_token = a->any_token}, &r);
    for (int i = 0; i < argc && r.status == TARE_OK; i++) r.status = send_file(&s, argv[i]);
    if (!rc) rc = answer(cli, a, s.to, &r);
    store_close(s.to);
    return rc;
}

int cmd_push(struct cli *cli, int argc, char **argv)
{
    static const struct opt_usage usage = {
        .synopsis = "tare push [options]\ntare push [options] <run.json | trace.tare>...\ntare push [options] --all",
        .about = "Send runs to a server (tare serve): those that tare bench --push could not send, documents that are "
                 "named, or the whole history; and traces of runs that are there. "
                 "A run has its id from the start, so that sending it twice is harmless. "
                 "The token is read from TARE_TOKEN, and from nowhere else.",
        .tail = "export TARE_SERVER=http://127.0.0.1:8321 TARE_TOKEN=tare_ingest_...\n"
                "tare push                                what waits\n"
                "tare push tare-results/bench_*.json      these\n"
                "tare push --all                          every run of the history",
        .max_args = OPT_ANY,
        .args = OPT_ARGS_FILES,
    };
    struct push_command a = {.where = HISTORY_ARGS_INIT};
    const struct opt rows[] = {
        OPT_STRING(0, "server", &a.where.server, "<url>", "the server (TARE_SERVER)",
                   .required = "which server? --server URL, or TARE_SERVER"),
        OPT_FLAG(0, "all", &a.all, "every run of the history"),
        OPT_FLAG(0, "any-token", &a.any_token, "also what waits for another token, with this one", .not_with = "all"),
        OPT_STRING(0, "run", &a.run, "<id>", "the run that traces belong to (default: the document beside them)",
                   .not_with = "all"),
        OPT_HISTORY(&a.where),
        OPT_HISTORY_DIR(&a.where),
        OPT_JSON(&a.json),
        OPT_END,
    };
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    if (argc && (a.all || a.any_token))
        return cli_usage_error(cli, "%s is not for documents that are named",
                               a.all ? "--all" : "--any-token");
    if (a.run && !ulid_is_valid(a.run)) return cli_usage_error(cli, "--run %s: is no id of a run", a.run);
    return push(cli, &a, argc, argv);
}

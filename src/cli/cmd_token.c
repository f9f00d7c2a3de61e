/* SPDX-License-Identifier: MIT
 * cmd_token.c - `tare token`: who may ask a server. A token is shown once, when it is made; only its hash is kept. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/server_data.h"
#include "core/clock.h"
#include "report/text.h"
#include "server/server.h"

struct token_command {
    const char *data, *db, *scope, *project, *name;
    struct duration lives;
    bool json;
};

/* ---- new ---- */

/* One change with its entry in the audit. */
static tare_status add_token(struct store *store, const struct token_wish *wish, char text[TOKEN_SIZE],
                             tare_error *err)
{
    char id[TOKEN_ID_LEN + 1];
    tare_status s = store->ops->begin(store, err);
    if (s != TARE_OK) return s;
    s = token_new(store, wish, text, err);
    if (s == TARE_OK) {
        token_id(text, id);
        s = audit_add_local(store, "token new", id, wish->project, err);
    }
    tare_status end = store->ops->end(store, s == TARE_OK, s == TARE_OK ? err : NULL);
    return s != TARE_OK ? s : end;
}

static int make_token(struct cli *cli, const struct token_command *a)
{
    struct token_wish wish = {.project = a->project, .name = a->name, .lives_ms = a->lives.ns / 1000000};
    char text[TOKEN_SIZE];
    struct answer out;
    if (!a->scope)
        return cli_usage_error(cli,
                               "what may it do? --scope read, ingest, run, admin, or several: read,ingest");
    if (scopes_parse(a->scope, &wish.scopes, &cli->error) < 0)
        return cli_usage_error(cli, "--scope: %s", cli->error.text);
    if (a->project && !store_name_ok(a->project))
        return cli_usage_error(cli, "--project '%.80s': letters, digits and . _ - / only, at most %d",
                               a->project, STORE_NAME_MAX);
    int rc = 0;
    struct store *store =
        cli_server_store(cli, &(struct server_options){.data = a->data, .db = a->db}, true, &rc);
    if (!store) return rc;
    tare_status s = add_token(store, &wish, text, &cli->error);
    store_close(store);
    if (s < 0) return cli_fail(cli);
    cli_answer_begin(cli, &out, a->json);
    answer_str(&out, "token", text, "%s\n", text);
    cli_note(cli, "this is the only time it is shown");
    return cli_answer_end(cli, &out);
}

/* ---- list ---- */

static tare_status list_token(void *ctx, const struct store_token *t, tare_error *err)
{
    struct answer *a = ctx;
    const char *state = token_state(t, (int64_t)(clock_unix_ns() / 1000000));
    (void)err;
    answer_object(a, NULL);
    answer_str(a, "id", t->id, "%s", t->id);
    answer_str(a, "scopes", t->scopes, "%s", t->scopes);
    answer_str(a, "project", t->project, "%s", t->project ? t->project : "all");
    answer_str(a, "name", t->name, "%s", t->name ? t->name : "-");
    answer_str(a, "state", state, "%s", state);
    cli_answer_time(a, "created", t->created_ms);
    cli_answer_time(a, "expires", t->expires_ms);
    cli_answer_time(a, "used", t->used_ms);
    answer_object_end(a);
    return TARE_OK;
}

static int list_tokens(struct cli *cli, const struct token_command *a)
{
    static const struct table_column columns[] = {
        {"id", true},    {"scopes", true},        {"project", true},      {"name", true},
        {"state", true}, {"created (UTC)", true}, {"expires (UTC)", true}, {"used (UTC)", true}};
    struct answer out;
    int rc = 0;
    struct store *store = cli_server_store(cli, &(struct server_options){.data = a->data, .db = a->db}, false, &rc);
    if (!store) return rc;
    cli_answer_begin(cli, &out, a->json);
    answer_table(&out, "tokens", columns, sizeof columns / sizeof *columns);
    tare_status s = store->ops->tokens(store, list_token, &out, &cli->error);
    answer_table_end(&out);
    rc = cli_answer_end(cli, &out);
    store_close(store);
    return s < 0 ? cli_fail(cli) : rc;
}

/* ---- revoke ---- */

/* Whose it was: the entry in the audit belongs to that project. */
struct owner {
    const char *id;
    char project[STORE_NAME_MAX + 1];
};

static tare_status find_owner(void *ctx, const struct store_token *t, tare_error *err)
{
    struct owner *o = ctx;
    (void)err;
    if (strcmp(t->id, o->id) == 0 && t->project) snprintf(o->project, sizeof o->project, "%s", t->project);
    return TARE_OK;
}

static tare_status end_token(struct store *store, const char *id, tare_error *err)
{
    struct owner owner = {id, ""};
    tare_status s = store->ops->begin(store, err);
    if (s != TARE_OK) return s;
    s = store->ops->tokens(store, find_owner, &owner, err);
    if (s == TARE_OK) s = store->ops->token_revoke(store, id, (int64_t)(clock_unix_ns() / 1000000), err);
    if (s == TARE_OK)
        s = audit_add_local(store, "token revoke", id, owner.project[0] ? owner.project : NULL, err);
    tare_status end = store->ops->end(store, s == TARE_OK, s == TARE_OK ? err : NULL);
    return s != TARE_OK ? s : end;
}

static int revoke_token(struct cli *cli, const struct token_command *a, const char *id)
{
    int rc = 0;
    struct store *store = cli_server_store(cli, &(struct server_options){.data = a->data, .db = a->db}, false, &rc);
    if (!store) return rc;
    tare_status s = end_token(store, id, &cli->error);
    store_close(store);
    if (s < 0) return cli_fail(cli);
    cli_note(cli, "token %s is revoked: a server that runs refuses it within a second", id);
    return CLI_GOOD;
}

int cmd_token(struct cli *cli, int argc, char **argv)
{
    static const struct opt_choice words[] = {{"new", 0, "make one and show it, once"},
                                              {"list", 0, "those there are, without their secrets"},
                                              {"revoke", 0, "end one by its id"},
                                              {NULL, 0, NULL}};
    static const struct opt_usage usage = {
        .synopsis = "tare token new --scope <scopes> [options]\n"
                    "tare token list [--json]\n"
                    "tare token revoke <id>",
        .about = "Who may ask a server (tare serve), and what: read (runs and numbers), ingest (keep runs), run (what "
                 "its operator allows), admin (tokens and the audit). Works on the server's data, whether it runs or "
                 "not.",
        .tail = "tare token new --scope read,ingest             shown once\n"
                "tare token new --scope ingest --project nlp    sees and keeps runs of nlp only\n"
                "tare token revoke 3f1c9a0b77d2",
        .max_args = 2,
        .words = words,
    };
    struct token_command a = {.data = "tare-server"};
    const struct opt rows[] = {
        OPT_STRING(0, "data", &a.data, "<dir>", "the folder of the server's data", .flags = OPT_DIR),
        OPT_STRING(0, "db", &a.db, "<url>", "its PostgreSQL database instead: postgresql://user@host/name"),
        OPT_STRING(0, "scope", &a.scope, "<scopes>", "new: read, ingest, run, admin, separated by commas"),
        OPT_STRING(0, "project", &a.project, "<name>", "new: bound to the runs of this project"),
        OPT_STRING(0, "name", &a.name, "<text>", "new: what list calls it"),
        OPT_TIME_IN(0, "expires", &a.lives, 0, INT64_C(315360000000000000),
                    "new: is worth nothing after this long (default: never)", .flags = OPT_NO_DEFAULT,
                    .arg = "<time>"),
        OPT_JSON(&a.json),
        OPT_END,
    };
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    if (argc == 0) return cli_usage_error(cli, "expected new, list or revoke <id>");
    if (strcmp(argv[0], "new") == 0 && argc == 1) return make_token(cli, &a);
    if (strcmp(argv[0], "list") == 0 && argc == 1) return list_tokens(cli, &a);
    if (strcmp(argv[0], "revoke") == 0 && argc == 2) return revoke_token(cli, &a, argv[1]);
    return cli_usage_error(cli, "expected new, list or revoke <id>");
}

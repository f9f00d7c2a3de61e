/* SPDX-License-Identifier: MIT
 * cmd_audit.c - `tare audit`: who changed what on a server, and whether that is still as it was written. */
#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/server_data.h"
#include "report/text.h"
#include "server/access/audit.h"

struct audit_command {
    const char *data, *db, *head;
    uint64_t limit;
    bool json;
};

/* ---- list ---- */

static void say(struct answer *a, const char *key, const char *text)
{
    answer_str(a, key, text, "%s", text ? text : "-");
}

static tare_status list_entry(void *ctx, const struct store_audit *e, tare_error *err)
{
    struct answer *a = ctx;
    (void)err;
    answer_object(a, NULL);
    answer_int(a, "seq", e->seq, "%" PRId64, e->seq);
    cli_answer_time(a, "at", e->at_ms);
    say(a, "who", e->who);
    say(a, "what", e->what);
    say(a, "about", e->about);
    say(a, "project", e->project);
    say(a, "from", e->source);
    say(a, "request", e->request);
    answer_uint(a, "status", e->status, "%u", e->status);
    answer_object_end(a);
    return TARE_OK;
}

static int list_audit(struct cli *cli, struct store *store, const struct audit_command *a)
{
    static const struct table_column columns[] = {{"entry", false}, {"at (UTC)", true}, {"who", true},
                                                  {"what", true},   {"about", true},    {"project", true},
                                                  {"from", true},   {"request", true},  {"status", false}};
    struct answer out;
    struct store_audit_filter f = {.newest_first = true, .limit = a->limit};
    cli_answer_begin(cli, &out, a->json);
    answer_table(&out, "entries", columns, sizeof columns / sizeof *columns);
    tare_status s = store->ops->audits(store, &f, list_entry, &out, &cli->error);
    answer_table_end(&out);
    int rc = cli_answer_end(cli, &out);
    return s < 0 ? cli_fail(cli) : rc;
}

/* ---- verify ---- */

static int verify_audit(struct cli *cli, struct store *store, const struct audit_command *a)
{
    struct audit_report report;
    struct answer out;
    tare_status s = audit_verify(store, a->head, &report, &cli->error);
    if (s == TARE_FORMAT) {
        cli_fail(cli);
        return CLI_FINDING;
    }
    if (s < 0) return cli_fail(cli);
    cli_answer_begin(cli, &out, a->json);
    answer_uint(&out, "entries", report.entries, "%" PRIu64 " entries, each as it was written\n",
                report.entries);
    answer_str(&out, "head", report.entries ? report.head : NULL, "head %s\n",
               report.entries ? report.head : "none");
    return cli_answer_end(cli, &out);
}

int cmd_audit(struct cli *cli, int argc, char **argv)
{
    static const struct opt_choice words[] = {{"list", 0, "who changed what, newest first"},
                                              {"verify", 0, "is every entry as it was written?"},
                                              {NULL, 0, NULL}};
    static const struct opt_usage usage = {
        .synopsis = "tare audit list [--limit <n>] [--json]\n"
                    "tare audit verify [--head <hash>] [--json]",
        .about = "Who changed what on a server (tare serve), when, from where and with what result, and which requests "
                 "it refused. Every entry is chained to the one before by its hash: verify names the first that was "
                 "changed, left out or moved, and exits with 1.",
        .tail = "tare audit list --limit 20\n"
                "tare audit verify                      note the head it prints elsewhere\n"
                "tare audit verify --head 9f2c...       finds an end that was cut off since then, too",
        .max_args = 1,
        .words = words,
    };
    struct audit_command a = {.data = "tare-server", .limit = 100};
    const struct opt rows[] = {
        OPT_STRING(0, "data", &a.data, "<dir>", "the folder of the server's data", .flags = OPT_DIR),
        OPT_STRING(0, "db", &a.db, "<url>", "its PostgreSQL database instead: postgresql://user@host/name"),
        OPT_UINT_IN(0, "limit", &a.limit, 1, 1000000000, "list: at most so many entries"),
        OPT_STRING(0, "head", &a.head, "<hash>", "verify: a head that was noted earlier must be among the hashes"),
        OPT_JSON(&a.json),
        OPT_END,
    };
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    bool list = argc == 1 && strcmp(argv[0], "list") == 0,
         verify = argc == 1 && strcmp(argv[0], "verify") == 0;
    if (!list && !verify) return cli_usage_error(cli, "expected list or verify");
    if (a.head &&
        (strlen(a.head) != AUDIT_HEX_SIZE - 1 || strspn(a.head, "0123456789abcdef") != AUDIT_HEX_SIZE - 1))
        return cli_usage_error(cli, "--head: a hash has 64 digits of 0-9 and a-f, as verify prints it");
    struct store *store =
        cli_server_store(cli, &(struct server_options){.data = a.data, .db = a.db}, false, &rc);
    if (!store) return rc;
    rc = list ? list_audit(cli, store, &a) : verify_audit(cli, store, &a);
    store_close(store);
    return rc;
}

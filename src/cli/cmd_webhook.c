/* SPDX-License-Identifier: MIT
 * cmd_webhook.c - `tare __webhook`: takes one alert to its URL, for `tare run --webhook`, which starts it. Reads the
 * URL, a newline and the alert from stdin, so that the URL is in no list of processes; without an alert the URL is only
 * checked. On stdout stands why it failed, or nothing. */
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "watch/webhook.h"
#include "core/file.h"

static const struct opt_usage usage = {
    .synopsis = "tare __webhook",
    .about = "One alert of tare run --webhook on its way; started by it, useless alone.",
};

static tare_status deliver_alert(struct buf *text, tare_error *err)
{
    char *end = text->failed ? NULL : memchr(text->data, '\n', text->len);
    if (!end) return error_set(err, TARE_INVALID, "expected a URL, a newline and an alert on stdin");
    *end = 0;
    size_t n = text->len - (size_t)(end + 1 - text->data);
    return n ? webhook_post(text->data, end + 1, n, err) : webhook_check(text->data, err);
}

int cmd_webhook(struct cli *cli, int argc, char **argv)
{
    struct buf text = BUF_INIT;
    char piece[4096];
    ssize_t n;
    int rc = cli_options(cli, &usage, NULL, &argc, &argv);
    if (rc) return rc;
    while ((n = read(STDIN_FILENO, piece, sizeof piece)) > 0) buf_add(&text, piece, (size_t)n);
    tare_status s = deliver_alert(&text, &cli->error);
    buf_release(&text);
    if (s == TARE_OK) return CLI_GOOD;
    cli_write(cli, cli->error.text, strlen(cli->error.text));
    return s == TARE_INVALID ? CLI_USAGE : CLI_FAILED;
}

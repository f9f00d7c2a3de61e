/* SPDX-License-Identifier: MIT
 * asking.c - see asking.h. */
#include "cli/asking.h"

#include <stdlib.h>
#include <string.h>

#include "load/address.h"
#include "load/text.h"

void asking_args_release(struct asking_args *a)
{
    opt_list_release(&a->headers);
    opt_list_release(&a->json);
}

static int read_method(struct cli *cli, const char *method)
{
    static const char *const words[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    if (!method) return 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(method, words[i]) == 0) return 0;
    return cli_usage_error(cli, "--method %s: expected GET, POST, PUT, PATCH, DELETE or OPTIONS", method);
}

static int read_headers(struct cli *cli, const struct opt_list *headers, struct asking *out)
{
    for (size_t i = 0; i < headers->n; i++)
        if (load_add_header(&out->headers, headers->items[i], &cli->error) < 0)
            return cli_usage_error(cli, "--header: %s", cli->error.text);
    return 0;
}

static int read_expected(struct cli *cli, const struct asking_args *a, struct asking *out)
{
    if (a->text && strlen(a->text) > 255) return cli_usage_error(cli, "--expect-body: at most 255 bytes");
    for (size_t i = 0; i < a->json.n; i++)
        if (json_expect_add(&out->json, a->json.items[i], &cli->error) < 0)
            return cli_usage_error(cli, "--expect-json %s", cli->error.text);
    if (a->json.n) out->reader = json_expect_reader(&out->json);
    return 0;
}

/* A message that begins with the name of a file tells which option named it. */
static const char *option_of(const struct bodies_files *files, const char *message)
{
    const struct {
        const char *option, *file;
    } rows[] = {{"--body ", files->whole}, {"--inputs ", files->lines}, {"--template ", files->template}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].file && strncmp(message, rows[i].file, strlen(rows[i].file)) == 0) return rows[i].option;
    return "";
}

int asking_read(struct cli *cli, const struct asking_args *a, const struct asking_to *to, struct asking *out)
{
    struct load_address address;
    const struct bodies_files files = {
        .whole = a->body, .lines = to->inputs, .template = a->template, .url = to->url, .seed = to->seed};
    if (load_address_read(&address, to->url, &cli->error) < 0)
        return cli_usage_error(cli, "%s", cli->error.text);
    int rc = read_method(cli, a->method);
    if (!rc) rc = read_headers(cli, &a->headers, out);
    if (!rc) rc = read_expected(cli, a, out);
    if (rc) return rc;
    if (bodies_open(&out->bodies, &files, &cli->error) < 0)
        return cli_usage_error(cli, "%s%s", option_of(&files, cli->error.text), cli->error.text);
    out->source = bodies_source(&out->bodies);
    return 0;
}

void asking_release(struct asking *q)
{
    bodies_close(&q->bodies);
    json_expect_close(&q->json);
    buf_release(&q->headers);
}

struct load_options asking_options(const struct asking *q, const struct asking_args *a, const char *url)
{
    return (struct load_options){.url = url,
                                 .method = a->method,
                                 .headers = q->headers.len ? q->headers.data : NULL,
                                 .authorities = secure_getenv("TARE_CA_FILE"),
                                 .source = q->source,
                                 .reader = q->reader.name ? &q->reader : NULL,
                                 .expect_body = a->text && a->text[0] ? a->text : NULL,
                                 .expect_status = (unsigned)a->status,
                                 .connections = (unsigned)a->connections,
                                 .fresh = a->fresh,
                                 .interrupted = &interrupted};
}

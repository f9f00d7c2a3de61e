/* SPDX-License-Identifier: MIT
 * asking.h - what a service is asked and what a good answer is, as `tare bench` and `tare compare` are told: the rows
 * of their command lines, and what they make of them. */
#ifndef CLI_ASKING_H
#define CLI_ASKING_H

#include "cli/case_grid.h"
#include "cli/cli.h"
#include "load/bodies.h"
#include "load/json_expect.h"

struct asking_args {
    const char *body, *template, *method, *text; /* text: that a good answer has; NULL: not said */
    struct opt_list headers, json;
    uint64_t connections, status; /* 0: not said */
    bool fresh;
};
void asking_args_release(struct asking_args *a);

/* clang-format off */
#define OPT_ASKING(r) \
    OPT_PATH(0, "body", &(r)->body, "<file>", "the body of each request: its bytes as they are (POST)", \
             .only_for = KIND_SERVICE, .not_with = "inputs template"), \
    OPT_PATH(0, "template", &(r)->template, "<file>", \
             "the body, with {{id}}, {{random:1..9}}, {{random:hex:8}}, {{random:words:50}}; {{line}} and " \
             "{{line:key}} of --inputs", .only_for = KIND_SERVICE), \
    OPT_STRING(0, "method", &(r)->method, "<word>", "GET, POST, PUT, PATCH, DELETE (default: POST with a body)", \
               .only_for = KIND_SERVICE), \
    OPT_LIST(0, "header", &(r)->headers, "<name: value>", \
             "a header; 'Name: env:VARIABLE' keeps the value out of sight", .only_for = KIND_SERVICE), \
    OPT_UINT_IN(0, "connections", &(r)->connections, 1, 60000, \
                "connections open at once at most (default: what the limit of open files allows)", \
                .only_for = KIND_SERVICE, .flags = OPT_NO_DEFAULT), \
    OPT_FLAG(0, "fresh", &(r)->fresh, "a new connection for each request", .only_for = KIND_SERVICE), \
    OPT_UINT_IN(0, "expect-status", &(r)->status, 200, 599, "the status of a good answer (default: any 2xx)", \
                .only_for = KIND_SERVICE, .flags = OPT_NO_DEFAULT), \
    OPT_STRING(0, "expect-body", &(r)->text, "<text>", "what must stand in the body of a good answer", \
               .only_for = KIND_SERVICE), \
    OPT_LIST(0, "expect-json", &(r)->json, "<path=value>", \
             "what a good answer has at this path of its JSON: label=cat, scores.0>=0.5, choices", \
             .only_for = KIND_SERVICE)
/* clang-format on */

struct asking {
    struct bodies bodies;
    struct load_source source; /* of the bodies, until somebody puts his own there */
    struct load_reader reader; /* name NULL: none */
    struct json_expect json;
    struct buf headers; /* lines */
};
#define ASKING_INIT {.bodies = BODIES_INIT, .headers = BUF_INIT}

struct asking_to {
    const char *url, *inputs; /* inputs: a file of lines; NULL: none */
    uint64_t seed;
};
/* Reads what is sent. 0, or the exit code after the user was told. Always release. */
int asking_read(struct cli *cli, const struct asking_args *a, const struct asking_to *to, struct asking *out);
void asking_release(struct asking *q);
/* What an engine of load is told of it; borrows. */
struct load_options asking_options(const struct asking *q, const struct asking_args *a, const char *url);

#endif

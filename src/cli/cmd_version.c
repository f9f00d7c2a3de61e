/* SPDX-License-Identifier: MIT
 * cmd_version.c - `tare version`: which tare this is. The rows are one list for text and JSON alike. */
#include <jansson.h>
#include <openssl/crypto.h>
#include <sqlite3.h>
#include <yaml.h>
#include <zlib.h>
#include <zstd.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "watch/webhook.h"
#include "core/json.h"

#ifndef TARE_COMMIT
#define TARE_COMMIT ""
#endif

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

#if defined(__x86_64__)
#define ARCHITECTURE "x86-64"
#elif defined(__aarch64__)
#define ARCHITECTURE "aarch64"
#else
#define ARCHITECTURE "other"
#endif

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZER "address"
#elif defined(__SANITIZE_THREAD__)
#define SANITIZER "thread"
#else
#define SANITIZER "none"
#endif

enum group { ITSELF, FEATURE, LINKED };

struct fact {
    enum group group;
    const char *name;
    const char *value; /* NULL: unknown */
};

enum { N_FACTS = 12 };

static void collect(struct fact facts[N_FACTS])
{
    const char *curl = webhook_library();
    const struct fact all[N_FACTS] = {
        {ITSELF, "version", TARE_VERSION},      {ITSELF, "commit", TARE_COMMIT[0] ? TARE_COMMIT : NULL},
        {ITSELF, "compiler", COMPILER},         {FEATURE, "architecture", ARCHITECTURE},
        {FEATURE, "sanitizer", SANITIZER},      {LINKED, "jansson", jansson_version_str()},
        {LINKED, "zstd", ZSTD_versionString()}, {LINKED, "libyaml", yaml_get_version_string()},
        {LINKED, "zlib", zlibVersion()},        {LINKED, "libcrypto", OpenSSL_version(OPENSSL_VERSION_STRING)},
        {LINKED, "sqlite", sqlite3_libversion()},  {LINKED, "libcurl", *curl ? curl : NULL},
    };
    for (size_t i = 0; i < N_FACTS; i++) facts[i] = all[i];
}

static void write_text(struct buf *out, const struct fact *facts)
{
    buf_printf(out, "tare %s\n", facts[0].value);
    for (size_t i = 1; i < N_FACTS; i++)
        buf_printf(out, "  %-13s %s\n", facts[i].name, facts[i].value ? facts[i].value : "unknown");
}

static void write_group(struct json *j, const struct fact *facts, enum group group)
{
    for (size_t i = 0; i < N_FACTS; i++)
        if (facts[i].group == group) json_kv_string(j, facts[i].name, facts[i].value);
}

static void write_json(struct buf *out, const struct fact *facts)
{
    struct json j;
    json_init(&j, out, JSON_STYLE_PRETTY);
    json_object_begin(&j);
    write_group(&j, facts, ITSELF);
    json_key(&j, "features");
    json_object_begin(&j);
    write_group(&j, facts, FEATURE);
    json_object_end(&j);
    json_key(&j, "linked");
    json_object_begin(&j);
    write_group(&j, facts, LINKED);
    json_object_end(&j);
    json_object_end(&j);
    json_finish(&j, NULL);
}

int cmd_version(struct cli *cli, int argc, char **argv)
{
    static const struct opt_usage usage = {
        .synopsis = "tare version [options]",
        .about = "Print the version, the commit and the compiler this tare was built from, and the libraries "
                 "it is linked with.",
    };
    bool json = false;
    struct fact facts[N_FACTS];
    const struct opt rows[] = {OPT_JSON(&json), OPT_END};
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    struct buf text = BUF_INIT;
    collect(facts);
    (json ? write_json : write_text)(&text, facts);
    rc = cli_put(cli, &text);
    buf_release(&text);
    return rc;
}

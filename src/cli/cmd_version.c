/* SPDX-License-Identifier: MIT
 * cmd_version.c - `tare version`: which tare this is. */
#include <gnu/libc-version.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <sqlite3.h>
#include <yaml.h>
#include <zlib.h>
#include <zstd.h>

#include "cli/command.h"
#include "cli/output.h"
#include "http/http_parse.h"
#include "watch/webhook.h"

#ifndef TARE_COMMIT
#define TARE_COMMIT ""
#endif

#ifndef TARE_FLAGS
#define TARE_FLAGS ""
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

static void say_fact(struct answer *a, const char *name, const char *value)
{
    answer_str(a, name, value, "  %-13s %s\n", name, value ? value : "unknown");
}

static void say_version(struct answer *a)
{
    const char *curl = webhook_library();
    answer_str(a, "version", TARE_VERSION, "tare %s\n", TARE_VERSION);
    say_fact(a, "commit", TARE_COMMIT[0] ? TARE_COMMIT : NULL);
    say_fact(a, "compiler", COMPILER);
    say_fact(a, "flags", TARE_FLAGS[0] ? TARE_FLAGS : NULL);
    answer_object(a, "features");
    say_fact(a, "architecture", ARCHITECTURE);
    say_fact(a, "sanitizer", SANITIZER);
    answer_object_end(a);
    answer_object(a, "linked");
    say_fact(a, "glibc", gnu_get_libc_version());
    say_fact(a, "jansson", jansson_version_str());
    say_fact(a, "zstd", ZSTD_versionString());
    say_fact(a, "libyaml", yaml_get_version_string());
    say_fact(a, "zlib", zlibVersion());
    say_fact(a, "libcrypto", OpenSSL_version(OPENSSL_VERSION_STRING));
    say_fact(a, "sqlite", sqlite3_libversion());
    say_fact(a, "llhttp", http_library());
    say_fact(a, "libcurl", *curl ? curl : NULL);
    answer_object_end(a);
}

int cmd_version(struct cli *cli, int argc, char **argv)
{
    static const struct opt_usage usage = {
        .synopsis = "tare version [options]",
        .about = "Print the version of this tare, the commit, the compiler and the flags it was built from, and the "
                 "libraries it is linked with.",
    };
    bool json = false;
    struct answer a;
    const struct opt rows[] = {OPT_JSON(&json), OPT_END};
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    cli_answer_begin(cli, &a, json);
    say_version(&a);
    return cli_answer_end(cli, &a);
}

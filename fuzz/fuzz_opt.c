/* SPDX-License-Identifier: MIT
 * fuzz_opt.c - any command line into rows of every type: no crash, no leak, nothing out of range. The bytes
 * are words ended by NUL; the first byte says what the usage allows. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/opt.h"
#include "core/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_WORDS = 64 };

static const struct opt_choice words_of_format[] = {{"chrome", 1, "c"}, {"folded", 2, NULL}, {NULL, 0, NULL}};

static tare_status on_text(void *ctx, const char *text, tare_error *err)
{
    *(size_t *)ctx += strlen(text);
    return text[0] == '!' ? error_set(err, TARE_INVALID, "no") : TARE_OK;
}

static const char *layer(const struct opt_request *req, const struct opt *row, char *origin, size_t size)
{
    char **words = req->layer_ctx; /* the last word is also a setting */
    snprintf(origin, size, "LAYER_%s", row->name);
    return row->type == OPT_TYPE_LIST || row->type == OPT_TYPE_STRING ? words[0] : NULL;
}

static void check_values(int argc, char **argv, const struct opt_request *req)
{
    bool help = false;
    tare_error err = TARE_ERROR_INIT;
    struct buf text = BUF_INIT;
    opt_complete(&text, req, argc - 1, argv + 1);
    assert(!text.failed);
    buf_clear(&text);
    int n = argc;
    char **left = argv;
    tare_status s = opt_read(req, &n, &left, &help, &err);
    if (s < 0) {
        assert(err.text[0] && memchr(err.text, 0, sizeof err.text));
    } else if (!help) {
        assert(n >= 0 && n < argc && left[n] == NULL);
    }
    opt_help(&text, req);
    assert(!text.failed);
    buf_release(&text);
}

static void parse(int argc, char **argv, uint8_t mode)
{
    bool flag = mode & 1, other = false;
    const char *string = NULL;
    int choice = 1;
    int64_t level = 0;
    uint64_t runs = 3;
    struct duration budget = {0};
    double ratio = 0.5;
    size_t called = 0;
    struct opt_list list = OPT_LIST_INIT;
    const struct opt rows[] = {
        OPT_FLAG('a', "flag", &flag, "a flag"),
        OPT_FLAG('b', "other", &other, "another"),
        OPT_PATH('s', "string", &string, "<file>", "a file"),
        OPT_ENUM('f', "format", &choice, words_of_format, "a word"),
        OPT_INT_IN('i', "int", &level, -9, 9, "a number"),
        OPT_UINT_IN('u', "uint", &runs, 1, 1000, "a number"),
        OPT_TIME_IN('t', "time", &budget, 0, INT64_MAX, "a time"),
        OPT_DOUBLE('d', "double", &ratio, -1, 1, "a number"),
        OPT_LIST('l', "list", &list, "<x>", "several"),
        OPT_CALLBACK('c', "call", on_text, &called, "<x>", "a text"),
        OPT_FLAG('h', "help", NULL, "help", .flags = OPT_NO_ENV),
        OPT_END,
    };
    const struct opt_usage usage = {.synopsis = "tare fuzz <x>",
                                    .min_args = mode >> 1 & 1,
                                    .max_args = mode >> 2 & 3,
                                    .stop_at_arg = mode >> 4 & 1,
                                    .words = words_of_format};
    opt_layer_fn *const layers[] = {layer, NULL};
    struct opt_given given = {0};
    const struct opt_request req = {
        "fuzz", &usage, rows, mode & 32 ? layers : NULL, argv + argc - 1, mode & 64 ? &given : NULL};
    check_values(argc, argv, &req);
    assert(level >= -9 && level <= 9 && runs >= 1 && runs <= 1000 && ratio >= -1 && ratio <= 1);
    assert(budget.ns >= 0 && (choice == 1 || choice == 2));
    opt_list_release(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *argv[MAX_WORDS + 2], name[] = "fuzz";
    int argc = 1;
    if (size < 1) return 0;
    char *copy = malloc(size + 1);
    if (!copy) return 0;
    memcpy(copy, data, size);
    copy[size] = 0;
    argv[0] = name;
    for (char *w = copy + 1; w < copy + size && argc <= MAX_WORDS; w += strlen(w) + 1) argv[argc++] = w;
    argv[argc] = NULL;
    long before = mem_live_blocks();
    parse(argc, argv, data[0]);
    assert(mem_live_blocks() == before);
    free(copy);
    return 0;
}

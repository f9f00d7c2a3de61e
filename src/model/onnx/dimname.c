/* SPDX-License-Identifier: MIT
 * dimname.c - see dimname.h. */
#include "model/onnx/dimname.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/onnx/onnx.h"

static bool any_of(const char *word, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcasecmp(word, names[i]) == 0) return true;
    }
    return false;
}

/* Is this no name that means anything: empty, or made up by a converter, as torch.export's s18 and u0 are? */
static bool dimname_is_nameless(const char *name)
{
    bool numbered = (*name == 's' || *name == 'u') && name[1] && !name[1 + strspn(name + 1, "0123456789")];
    return !*name || numbered || strncmp(name, "unk__", 5) == 0 || strcmp(name, "?") == 0 ||
           strcasecmp(name, "none") == 0;
}

enum dim_class dimname_class(const char *name)
{
    static const char *const batch[] = {"n", "b", "bs", "bsz", "num_samples", "n_samples"};
    static const char *const seq[] = {"s",    "t",      "l",          "len",      "length",
                                      "time", "tokens", "num_tokens", "n_tokens", "text_length"};
    if (strchr(name, '+')) return DIM_TOTAL;
    if (strcasestr(name, "past") || strcasestr(name, "cache")) return DIM_PAST;
    if (strcasestr(name, "total_seq")) return DIM_TOTAL;
    if (strncasecmp(name, "batch", 5) == 0 || strcasestr(name, "_batch") ||
        any_of(name, batch, sizeof batch / sizeof *batch)) {
        return DIM_BATCH;
    }
    if (strcasestr(name, "seq") || any_of(name, seq, sizeof seq / sizeof *seq)) return DIM_SEQ;
    return DIM_OTHER;
}

/* Does an input hold something for every token of a text? */
static bool is_per_token(const char *input)
{
    static const char *const words[] = {"ids", "mask", "embeds", "tokens"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(input, words[i])) return true;
    return false;
}

enum dim_class dimname_class_at(const char *input, const char *name, size_t axis, size_t rank, int type)
{
    if (!dimname_is_nameless(name)) return dimname_class(name);
    bool ids = rank == 2 && (type == ONNX_INT64 || type == ONNX_INT32),
         cached = strcasestr(input, "past") != NULL;
    if (axis == 0) return DIM_BATCH;
    if (cached) return axis == 2 && rank == 4 ? DIM_PAST : DIM_OTHER;
    return axis == 1 && (ids || (rank <= 3 && is_per_token(input))) ? DIM_SEQ : DIM_OTHER;
}

static int64_t part_value(const char *part, dimname_value *value, void *ctx)
{
    char *end;
    long long number = strtoll(part, &end, 10);
    return end != part && *end == 0 ? number : value(ctx, part);
}

int64_t dimname_total(const char *name, dimname_value *value, void *ctx)
{
    char text[160], *save = NULL;
    int64_t sum = 0;
    if (!strchr(name, '+')) return value(ctx, "past_sequence_length") + value(ctx, "sequence_length");
    snprintf(text, sizeof text, "%s", name);
    for (char *part = strtok_r(text, "+", &save); part; part = strtok_r(NULL, "+", &save)) {
        while (isspace((unsigned char)*part)) part++;
        size_t n = strlen(part);
        while (n && isspace((unsigned char)part[n - 1])) part[--n] = 0;
        sum += part_value(part, value, ctx);
    }
    return sum;
}

int64_t dimname_default(enum dim_class class, bool has_cache)
{
    if (class == DIM_PAST) return 0;
    return class == DIM_SEQ && !has_cache ? DIMNAME_SEQ : 1;
}

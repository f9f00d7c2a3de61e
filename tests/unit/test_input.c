/* SPDX-License-Identifier: MIT
 * test_input.c - free dimensions made numbers, inputs made up by the rules of input.h, arrays from files fitted. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "subject/onnx_model.h"

/* A model's input by hand: dims -1 with a name, or a number. */
static void add_io(struct ort_ios *ios, const char *name, int type, const char *dims)
{
    struct ort_io io = {
        .name = arena_str(&ios->texts, name), .kind = ORT_TENSOR, .type = type, .has_shape = true};
    char text[200], *save = NULL;
    snprintf(text, sizeof text, "%s", dims);
    for (char *d = strtok_r(text, ",", &save); d; d = strtok_r(NULL, ",", &save)) {
        char *end;
        long v = strtol(d, &end, 10);
        io.dims[io.rank] = *end ? -1 : v;
        io.symbols[io.rank++] = arena_str(&ios->texts, *end && strcmp(d, "-") != 0 ? d : "");
    }
    assert_int_equal(vec_push(&ios->items, io, NULL), TARE_OK);
}

static struct ort_ios bert(void)
{
    struct ort_ios ios = {.items = VEC_INIT};
    add_io(&ios, "input_ids", ONNX_INT64, "batch_size,sequence_length");
    add_io(&ios, "attention_mask", ONNX_INT64, "batch_size,sequence_length");
    return ios;
}

static struct free_dims resolve(const struct ort_ios *ios, const struct case_params *p)
{
    struct free_dims d;
    tare_error err = TARE_ERROR_INIT;
    if (free_dims_resolve(&d, ios, p, NULL, &err) < 0) fail_msg("%s", err.text);
    return d;
}

/* ---- dimensions ---- */

static void usual_names_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum dim_class class;
    } rows[] = {
        {"batch", DIM_BATCH},
        {"batch_size", DIM_BATCH},
        {"N", DIM_BATCH},
        {"decoder_batch", DIM_BATCH},
        {"Batch", DIM_BATCH},
        {"sequence", DIM_SEQ},
        {"seq_len", DIM_SEQ},
        {"sequence_length", DIM_SEQ},
        {"seq", DIM_SEQ},
        {"height", DIM_OTHER},
        {"past_sequence", DIM_PAST},
        {"past_sequence_length", DIM_PAST},
        {"total_sequence_length", DIM_TOTAL},
        {"past_sequence_length + 1", DIM_TOTAL},
        {"encoder_sequence_length", DIM_SEQ},
        {"channels", DIM_OTHER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ort_ios ios = {.items = VEC_INIT};
        add_io(&ios, "x", ONNX_FLOAT, "3");
        ios.items.items[0].dims[0] = -1;
        ios.items.items[0].symbols[0] = arena_str(&ios.texts, rows[i].name);
        if (dim_class_of(&ios.items.items[0], 0) != rows[i].class) fail_msg("%s", rows[i].name);
        ort_ios_release(&ios);
    }
    struct ort_ios ios = {.items = VEC_INIT};
    add_io(&ios, "ids", ONNX_INT64, "-,-");
    add_io(&ios, "x", ONNX_FLOAT, "unk__7,-");
    assert_int_equal(dim_class_of(&ios.items.items[0], 0), DIM_BATCH);
    assert_int_equal(dim_class_of(&ios.items.items[0], 1), DIM_SEQ);
    assert_int_equal(dim_class_of(&ios.items.items[1], 0), DIM_BATCH);
    assert_int_equal(dim_class_of(&ios.items.items[1], 1), DIM_OTHER);
    ort_ios_release(&ios);
}

/* torch.export calls dimensions s18, s41 where nobody named them: where they stand tells what they are. */
static void made_up_names(void **state)
{
    (void)state;
    static const struct {
        const char *input;
        int type;
        const char *dims;
        enum dim_class class[4];
    } rows[] = {
        {"input_ids", ONNX_INT64, "s18,s41", {DIM_BATCH, DIM_SEQ}},
        {"attention_mask", ONNX_FLOAT, "s18,s43", {DIM_BATCH, DIM_SEQ}},
        {"inputs_embeds", ONNX_FLOAT, "s18,s41,768", {DIM_BATCH, DIM_SEQ, DIM_OTHER}},
        {"pixel_values", ONNX_FLOAT, "s0,3,s1,s2", {DIM_BATCH, DIM_OTHER, DIM_OTHER, DIM_OTHER}},
        {"past_key_values.0.key", ONNX_FLOAT, "u0,8,s50,64", {DIM_BATCH, DIM_OTHER, DIM_PAST, DIM_OTHER}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ort_ios ios = {.items = VEC_INIT};
        add_io(&ios, rows[i].input, rows[i].type, rows[i].dims);
        for (size_t d = 0; d < ios.items.items[0].rank; d++)
            if (ios.items.items[0].dims[d] < 0)
                assert_int_equal(dim_class_of(&ios.items.items[0], d), rows[i].class[d]);
        ort_ios_release(&ios);
    }
    struct ort_ios ios = {.items = VEC_INIT};
    add_io(&ios, "input_ids", ONNX_INT64, "s18,s41");
    struct free_dims d = resolve(&ios, &(struct case_params){.batch = 4});
    assert_true(d.batch == 4 && d.seq == DIMNAME_SEQ && !d.chosen.items[1].asked);
    free_dims_release(&d);
    ort_ios_release(&ios);
}

static void batch_seq_and_names(void **state)
{
    (void)state;
    struct ort_ios ios = bert();
    struct free_dims d = resolve(&ios, &(struct case_params){.batch = 4, .seq = 16});
    assert_true(d.batch == 4 && d.seq == 16);
    for (size_t i = 0; i < 2; i++) {
        const int64_t *dims = free_dims_of(&d, &ios, i);
        assert_true(dims[0] == 4 && dims[1] == 16);
    }
    free_dims_release(&d);
    struct dim_value by_name[] = {{"sequence_length", 7}};
    d = resolve(&ios, &(struct case_params){.batch = 2, .dims = by_name, .n_dims = 1});
    assert_true(d.batch == 2 && d.seq == 7);
    free_dims_release(&d);
    d = resolve(&ios, &(struct case_params){0}); /* nothing asked: one text of usual length, and told */
    assert_true(d.batch == 1 && d.seq == DIMNAME_SEQ && d.chosen.n == 2);
    free_dims_release(&d);
    ort_ios_release(&ios);
    assert_int_equal(mem_live_blocks(), 0);
}

static void caches_and_sums(void **state)
{
    (void)state;
    struct ort_ios ios = {.items = VEC_INIT};
    add_io(&ios, "attention_mask", ONNX_INT64, "batch_size,total_sequence_length");
    add_io(&ios, "other_mask", ONNX_INT64, "batch_size,past_sequence_length + 3");
    add_io(&ios, "input_ids", ONNX_INT64, "batch_size,sequence_length");
    add_io(&ios, "past.0.key", ONNX_FLOAT, "batch_size,12,past_sequence_length,64");
    struct free_dims d = resolve(&ios, &(struct case_params){.batch = 2, .seq = 5});
    assert_int_equal(free_dims_of(&d, &ios, 0)[1], 5);
    assert_int_equal(free_dims_of(&d, &ios, 1)[1], 3);
    assert_int_equal(free_dims_of(&d, &ios, 3)[2], 0);
    free_dims_release(&d);
    struct dim_value past[] = {{"past_sequence_length", 10}};
    d = resolve(&ios, &(struct case_params){.seq = 1, .dims = past, .n_dims = 1});
    assert_int_equal(free_dims_of(&d, &ios, 0)[1], 11);
    assert_int_equal(free_dims_of(&d, &ios, 1)[1], 13);
    free_dims_release(&d);
    ort_ios_release(&ios);
}

static void wrong_dimensions_are_errors(void **state)
{
    (void)state;
    struct ort_ios ios = bert(), fixed = {.items = VEC_INIT};
    struct free_dims d;
    tare_error err = TARE_ERROR_INIT;
    struct dim_value odd[] = {{"sequense", 7}}, negative[] = {{"batch_size", -2}};
    assert_int_equal(free_dims_resolve(&d, &ios, &(struct case_params){.dims = odd, .n_dims = 1}, NULL, &err),
                     TARE_INVALID);
    assert_non_null(strstr(err.text, "'sequense'; its free dimensions are: batch_size, sequence_length"));
    assert_int_equal(
        free_dims_resolve(&d, &ios, &(struct case_params){.dims = negative, .n_dims = 1}, NULL, &err),
        TARE_INVALID);
    add_io(&fixed, "image", ONNX_FLOAT, "8,3,224,224");
    assert_int_equal(free_dims_resolve(&d, &fixed, &(struct case_params){.batch = 4}, NULL, &err),
                     TARE_INVALID);
    assert_non_null(strstr(err.text, "no free batch dimension to set to 4; its free dimensions are: none"));
    assert_int_equal(free_dims_resolve(&d, &fixed, &(struct case_params){.seq = 4}, NULL, &err),
                     TARE_INVALID);
    d = resolve(&fixed, &(struct case_params){.batch = 8}); /* what it is already */
    assert_int_equal(d.batch, 8);
    free_dims_release(&d);
    ort_ios_release(&ios);
    ort_ios_release(&fixed);
    assert_int_equal(mem_live_blocks(), 0);
}

/* ---- made up ---- */

static struct tensor make_input(const char *name, int type, const char *shape, int64_t bound, uint64_t seed)
{
    struct ort_ios ios = {.items = VEC_INIT};
    struct tensor t;
    tare_error err = TARE_ERROR_INIT;
    add_io(&ios, name, type, shape);
    struct input_spec spec = {
        .io = &ios.items.items[0], .dims = ios.items.items[0].dims, .bound = bound, .seq = 9, .seed = seed};
    if (input_make(&t, &spec, &err) < 0) fail_msg("%s", err.text);
    ort_ios_release(&ios);
    return t;
}

static void expect_all(const char *name, int type, double want)
{
    struct tensor t = make_input(name, type, "2,5", 100, 1);
    for (uint64_t i = 0; i < 10; i++) {
        if (tensor_value(&t, i) != want)
            fail_msg("%s %s: %g", name, onnx_type_name(type), tensor_value(&t, i));
    }
    tensor_release(&t);
}

static void masks_types_positions_lengths(void **state)
{
    (void)state;
    expect_all("attention_mask", ONNX_INT64, 1);
    expect_all("padding_mask", ONNX_BOOL, 1);
    expect_all("Mask", ONNX_FLOAT, 1);
    expect_all("mask", ONNX_FLOAT16, 1);
    expect_all("token_type_ids", ONNX_INT64, 0);
    expect_all("segment_ids", ONNX_INT32, 0);
    expect_all("lengths", ONNX_INT32, 9);
    struct tensor t = make_input("position_ids", ONNX_INT64, "2,5", 4, 1);
    for (uint64_t i = 0; i < 10; i++) assert_true(tensor_value(&t, i) == (double)(i % 5 % 4));
    tensor_release(&t);
    assert_int_equal(mem_live_blocks(), 0);
}

static void integers_stay_below_their_bound(void **state)
{
    (void)state;
    static const int64_t bounds[] = {0, 1, 2, 100, 30522, INT64_MAX};
    static const int types[] = {ONNX_INT64, ONNX_INT32, ONNX_UINT32, ONNX_INT16, ONNX_UINT64};
    for (size_t b = 0; b < 6; b++) {
        for (size_t k = 0; k < 5; k++) {
            struct tensor t = make_input("input_ids", types[k], "8,512", bounds[b], 3);
            double most = 0;
            for (uint64_t i = 0; i < 4096; i++) {
                double v = tensor_value(&t, i);
                assert_true(v >= 0 && v < (double)(bounds[b] ? bounds[b] : 2));
                if (v > most) most = v;
            }
            if (bounds[b] == 100) assert_true(most == 99);
            if (bounds[b] == 0) assert_true(most == 1);
            tensor_release(&t);
        }
    }
}

static void floats_are_normal(void **state)
{
    (void)state;
    static const int types[] = {ONNX_FLOAT, ONNX_DOUBLE, ONNX_FLOAT16, ONNX_BFLOAT16, ONNX_COMPLEX64};
    for (size_t k = 0; k < 5; k++) {
        struct tensor t = make_input("pixel_values", types[k], "100,100", 0, 5);
        double sum = 0, squares = 0, outside = 0;
        for (uint64_t i = 0; i < 10000; i++) {
            double v = tensor_value(&t, i);
            assert_true(isfinite(v));
            sum += v;
            squares += v * v;
            outside += fabs(v) > 1.96;
        }
        /* five standard errors: seeded, so never by chance */
        assert_true(fabs(sum / 10000) < 0.05 && fabs(squares / 10000 - 1) < 0.071 &&
                    fabs(outside / 10000 - 0.05) < 0.011);
        tensor_release(&t);
    }
    for (int type = ONNX_FLOAT8E4M3FN; type <= ONNX_INT2; type++) {
        struct tensor t = make_input("x", type, "64", 0, 5);
        for (uint64_t i = 0; i < 64; i++) assert_true(isfinite(tensor_value(&t, i)));
        tensor_release(&t);
    }
}

static void booleans_and_bytes(void **state)
{
    (void)state;
    struct tensor t = make_input("use_cache_branch", ONNX_BOOL, "1", 0, 1);
    assert_true(tensor_value(&t, 0) == 0);
    tensor_release(&t);
    t = make_input("flags", ONNX_BOOL, "1000", 0, 1);
    unsigned ones = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(((uint8_t *)t.data)[i] < 2);
        ones += ((uint8_t *)t.data)[i];
    }
    assert_true(ones > 400 && ones < 600);
    tensor_release(&t);
    t = make_input("image", ONNX_UINT8, "4096", 0, 1);
    bool seen[256] = {false};
    for (uint64_t i = 0; i < 4096; i++) seen[((uint8_t *)t.data)[i]] = true;
    for (int i = 0; i < 256; i++) assert_true(seen[i]);
    tensor_release(&t);
}

static void the_seed_decides(void **state)
{
    (void)state;
    struct tensor a = make_input("x", ONNX_FLOAT, "64", 0, 1), b = make_input("x", ONNX_FLOAT, "64", 0, 1),
                  c = make_input("x", ONNX_FLOAT, "64", 0, 2);
    assert_memory_equal(a.data, b.data, a.bytes);
    assert_memory_not_equal(a.data, c.data, a.bytes);
    tensor_release(&a);
    tensor_release(&b);
    tensor_release(&c);
}

static void what_cannot_be_fed(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    struct tensor t;
    struct ort_ios ios = {.items = VEC_INIT};
    add_io(&ios, "words", ONNX_STRING, "2");
    add_io(&ios, "boxes", ONNX_FLOAT, "2");
    ios.items.items[1].kind = ORT_SEQUENCE;
    add_io(&ios, "anything", ONNX_FLOAT, "");
    ios.items.items[2].has_shape = false;
    struct input_spec spec = {.io = &ios.items.items[0], .dims = ios.items.items[0].dims};
    assert_int_equal(input_make(&t, &spec, &err), TARE_UNSUPPORTED);
    assert_non_null(strstr(err.text, "'words' is a tensor of text"));
    spec.io = &ios.items.items[1];
    assert_int_equal(input_make(&t, &spec, &err), TARE_UNSUPPORTED);
    assert_non_null(strstr(err.text, "'boxes' is a sequence"));
    spec.io = &ios.items.items[2];
    assert_int_equal(input_make(&t, &spec, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "--inputs"));
    ort_ios_release(&ios);
}

/* ---- from files ---- */

static struct tensor counted(const char *name, int type, int64_t rows, int64_t columns)
{
    struct tensor t;
    int64_t dims[] = {rows, columns};
    assert_int_equal(tensor_make(&t, &(struct tensor_spec){name, type, dims, 2}, NULL), TARE_OK);
    for (uint64_t i = 0; i < tensor_elements(&t); i++) ((int64_t *)t.data)[i] = (int64_t)i;
    return t;
}

static void rows_are_cut_and_cycled(void **state)
{
    (void)state;
    struct ort_ios ios = {.items = VEC_INIT};
    tare_error err = TARE_ERROR_INIT;
    add_io(&ios, "ids", ONNX_INT64, "batch,2");
    struct tensor file = counted("ids", ONNX_INT64, 3, 2), t;
    for (int64_t batch = 0; batch < 8; batch++) {
        for (unsigned worker = 0; worker < 3; worker++) {
            int64_t dims[] = {batch, 2};
            struct input_spec spec = {.io = &ios.items.items[0], .dims = dims};
            if (input_fit(&t, &spec, &file, worker, &err) < 0) fail_msg("%s", err.text);
            for (int64_t i = 0; i < batch * 2; i++) {
                int64_t row = batch == 3 ? i / 2 : (worker * batch + i / 2) % 3;
                assert_int_equal(((int64_t *)t.data)[i], row * 2 + i % 2);
            }
            tensor_release(&t);
        }
    }
    int64_t wide[] = {3, 5};
    struct input_spec spec = {.io = &ios.items.items[0], .dims = wide};
    assert_int_equal(input_fit(&t, &spec, &file, 0, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "'ids' is [3, 5] in this case, but its data are [3, 2]"));
    file.type = ONNX_UINT64;
    assert_int_equal(input_fit(&t, &spec, &file, 0, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "'ids' is int64, but its data are uint64"));
    tensor_release(&file);
    ort_ios_release(&ios);
    assert_int_equal(mem_live_blocks(), 0);
}

static void names_must_match(void **state)
{
    (void)state;
    struct ort_ios one = {.items = VEC_INIT};
    struct tensor_set any = TENSOR_SET_INIT;
    const struct tensor *found = NULL;
    struct tensor rows = counted("rows", ONNX_INT64, 2, 3); /* of rows.npy */
    add_io(&one, "x", ONNX_INT64, "2,3");
    assert_int_equal(tensor_set_take(&any, &rows, NULL), TARE_OK);
    assert_int_equal(input_match(&one, &any, &found, NULL), TARE_OK);
    assert_ptr_equal(found, &any.items.items[0]);
    tensor_set_release(&any);
    ort_ios_release(&one);
    struct ort_ios ios = bert();
    struct tensor_set set = TENSOR_SET_INIT;
    const struct tensor *match[2];
    tare_error err = TARE_ERROR_INIT;
    struct tensor mask = counted("attention_mask", ONNX_INT64, 2, 3),
                  ids = counted("input_ids", ONNX_INT64, 2, 3), extra = counted("labels", ONNX_INT64, 2, 3);
    assert_int_equal(tensor_set_take(&set, &mask, &err), TARE_OK);
    assert_int_equal(input_match(&ios, &set, match, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "no data for input 'input_ids'; the file has: attention_mask"));
    assert_int_equal(tensor_set_take(&set, &ids, &err), TARE_OK);
    assert_int_equal(input_match(&ios, &set, match, &err), TARE_OK);
    assert_string_equal(match[0]->name, "input_ids");
    assert_string_equal(match[1]->name, "attention_mask");
    struct free_dims d;
    assert_int_equal(free_dims_resolve(&d, &ios, &(struct case_params){0}, match, &err), TARE_OK);
    assert_true(d.batch == 2 && d.seq == 3); /* from the files */
    free_dims_release(&d);
    set.items.items[0].dims[0] = 3; /* two inputs that disagree */
    assert_int_equal(free_dims_resolve(&d, &ios, &(struct case_params){0}, match, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "batch_size"));
    assert_int_equal(tensor_set_take(&set, &extra, &err), TARE_OK);
    assert_int_equal(input_match(&ios, &set, match, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "no input 'labels'"));
    tensor_set_release(&set);
    ort_ios_release(&ios);
    assert_int_equal(mem_live_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_names_are_known),
        cmocka_unit_test(made_up_names),
        cmocka_unit_test(batch_seq_and_names),
        cmocka_unit_test(caches_and_sums),
        cmocka_unit_test(wrong_dimensions_are_errors),
        cmocka_unit_test(masks_types_positions_lengths),
        cmocka_unit_test(integers_stay_below_their_bound),
        cmocka_unit_test(floats_are_normal),
        cmocka_unit_test(booleans_and_bytes),
        cmocka_unit_test(the_seed_decides),
        cmocka_unit_test(what_cannot_be_fed),
        cmocka_unit_test(rows_are_cut_and_cycled),
        cmocka_unit_test(names_must_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

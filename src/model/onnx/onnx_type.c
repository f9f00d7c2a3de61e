/* SPDX-License-Identifier: MIT
 * onnx_type.c - what the element types of ONNX are called and how large they are: one row each. */
#include "model/onnx/onnx.h"

struct row {
    const char *name, *precision;
    unsigned bits;
};

static const struct row rows[ONNX_TYPES] = {
    [ONNX_UNDEFINED] = {"undefined", "mixed", 0},
    [ONNX_FLOAT] = {"float32", "fp32", 32},
    [ONNX_UINT8] = {"uint8", "int8", 8},
    [ONNX_INT8] = {"int8", "int8", 8},
    [ONNX_UINT16] = {"uint16", "int16", 16},
    [ONNX_INT16] = {"int16", "int16", 16},
    [ONNX_INT32] = {"int32", "int32", 32},
    [ONNX_INT64] = {"int64", "int64", 64},
    [ONNX_STRING] = {"string", "mixed", 0},
    [ONNX_BOOL] = {"bool", "mixed", 8},
    [ONNX_FLOAT16] = {"float16", "fp16", 16},
    [ONNX_DOUBLE] = {"float64", "fp64", 64},
    [ONNX_UINT32] = {"uint32", "int32", 32},
    [ONNX_UINT64] = {"uint64", "int64", 64},
    [ONNX_COMPLEX64] = {"complex64", "mixed", 64},
    [ONNX_COMPLEX128] = {"complex128", "mixed", 128},
    [ONNX_BFLOAT16] = {"bfloat16", "bf16", 16},
    [ONNX_FLOAT8E4M3FN] = {"float8e4m3fn", "fp8", 8},
    [ONNX_FLOAT8E4M3FNUZ] = {"float8e4m3fnuz", "fp8", 8},
    [ONNX_FLOAT8E5M2] = {"float8e5m2", "fp8", 8},
    [ONNX_FLOAT8E5M2FNUZ] = {"float8e5m2fnuz", "fp8", 8},
    [ONNX_UINT4] = {"uint4", "int4", 4},
    [ONNX_INT4] = {"int4", "int4", 4},
    [ONNX_FLOAT4E2M1] = {"float4e2m1", "fp4", 4},
    [ONNX_FLOAT8E8M0] = {"float8e8m0", "fp8", 8},
    [ONNX_UINT2] = {"uint2", "int2", 2},
    [ONNX_INT2] = {"int2", "int2", 2},
    [ONNX_FLOAT6E2M3] = {"float6e2m3", "fp6", 6},
    [ONNX_FLOAT6E3M2] = {"float6e3m2", "fp6", 6},
};

static const struct row *row(int type)
{
    static const struct row none = {"unknown", "mixed", 0};
    return type >= 0 && type < ONNX_TYPES ? &rows[type] : &none;
}

const char *onnx_type_name(int type)
{
    return row(type)->name;
}

const char *onnx_type_precision(int type)
{
    return row(type)->precision;
}

unsigned onnx_type_bits(int type)
{
    return row(type)->bits;
}

bool onnx_type_bytes(int type, uint64_t elements, uint64_t *bytes)
{
    unsigned bits = onnx_type_bits(type);
    uint64_t whole, rest = (elements % 8 * bits + 7) / 8;
    if (!bits || __builtin_mul_overflow(elements / 8, (uint64_t)bits, &whole)) return false;
    if (__builtin_add_overflow(whole, rest, bytes) || *bytes > INT64_MAX) return false;
    return true;
}

/* SPDX-License-Identifier: MIT
 * cost_rules_move.c - operators that compute nothing: they look at the same bytes anew, or move some. */
#include "model/cost/cost_rule.h"

/* Adding, multiplying or comparing into what is there. */
static void rule_scatter(struct cost_call *c)
{
    const struct infer_value *updates = cost_in(c, 2);
    const struct cost_each each = {1, 0, 0};
    const struct onnx_attribute *how = cost_attribute(c, "reduction");
    if (!how || cost_text_is(c, "reduction", "none")) return;
    cost_count(c, updates, cost_elements(c, updates), each);
}

/* Overlapping columns are added up. */
static void rule_col2im(struct cost_call *c)
{
    const struct cost_each each = {1, 0, 0};
    cost_count(c, cost_in(c, 0), cost_elements(c, cost_in(c, 0)), each);
}

#define NONE {0, 0, 0}
#define VIEW(op) {NULL, op, NULL, NONE, BYTES_NONE, COST_VIEW}
#define MOVE(op) {NULL, op, NULL, NONE, BYTES_ALL, 0}
#define PICK(op) {NULL, op, NULL, NONE, BYTES_PICKED, 0}
#define MAKE(op) {NULL, op, NULL, NONE, BYTES_WRITTEN, 0}

const struct cost_row cost_rows_move[] = {
    VIEW("Reshape"),
    VIEW("Flatten"),
    VIEW("Squeeze"),
    VIEW("Unsqueeze"),
    VIEW("Identity"),
    VIEW("Dropout"), /* passes on, when not training */
    VIEW("ExpandDims"),
    VIEW("BitCast"),
    {NULL, "Constant", NULL, NONE, BYTES_NONE, 0},
    {NULL, "Optional", NULL, NONE, BYTES_NONE, 0},
    PICK("Gather"),
    PICK("GatherElements"),
    PICK("GatherND"),
    PICK("Slice"),
    PICK("CenterCropPad"),
    PICK("Crop"),
    PICK("Compress"),
    PICK("RemovePadding"),
    MOVE("RestorePadding"),
    MOVE("Transpose"),
    MOVE("Split"),
    MOVE("Concat"),
    MOVE("Cast"),
    MOVE("CastLike"),
    MOVE("Pad"),
    MOVE("Expand"),
    MOVE("Tile"),
    MOVE("OneHot"),
    MOVE("DepthToSpace"),
    MOVE("SpaceToDepth"),
    MOVE("Trilu"),
    MOVE("ReverseSequence"),
    MOVE("NonZero"),
    MOVE("MaxUnpool"),
    MOVE("TensorScatter"),
    MOVE("ReorderInput"),
    MOVE("ReorderOutput"),
    MOVE("MemcpyToHost"),
    MOVE("MemcpyFromHost"),
    MAKE("Shape"),
    MAKE("Size"),
    MAKE("ConstantOfShape"),
    MAKE("EyeLike"),
    {NULL, "Scatter", NULL, NONE, BYTES_ALL, 0},
    {NULL, "ScatterElements", rule_scatter, NONE, BYTES_ALL, COST_IN_PLACE},
    {NULL, "ScatterND", rule_scatter, NONE, BYTES_ALL, COST_IN_PLACE},
    {NULL, "Col2Im", rule_col2im, NONE, BYTES_ALL, 0},
    {NULL, NULL, NULL, NONE, BYTES_ALL, 0},
};

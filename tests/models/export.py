#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Export the graphs in this folder anew: architectures of transformers and torchvision, through both exporters of PyTorch,
without their weights. Needs torch, torchvision, transformers, onnx and onnxscript, which the tests do not.

Tensors of 1 KiB and more become external data in a file `weights` that is not kept: tests make one of the right length,
with nothing in it. Parameters are random, since the TorchScript exporter merges tensors that are equal, as the zeros and
ones are that layers begin with. Batch norms are left as they are (not folded into convolutions), for the same reason.
usage: tests/models/export.py [NAME...]     NAME as in the files: resnet50.dynamo, minilm-l6.torchscript"""

import gzip
import math
import pathlib
import sys
import tempfile

import onnx
import torch
import torchvision
import transformers
from onnx import TensorProto

HERE = pathlib.Path(__file__).resolve().parent
KEPT_BYTES = 1024
SIZES = {TensorProto.FLOAT: 4, TensorProto.INT64: 8, TensorProto.INT32: 4, TensorProto.BOOL: 1}


def bert(layers, hidden, heads):
    return transformers.BertModel(transformers.BertConfig(
        hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * hidden))


def deberta():
    return transformers.DebertaV2Model(transformers.DebertaV2Config(
        vocab_size=128100, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072,
        relative_attention=True, position_buckets=256, norm_rel_ebd="layer_norm", share_att_key=True,
        pos_att_type=["p2c", "c2p"], position_biased_input=False, type_vocab_size=0, layer_norm_eps=1e-7))


IMAGES = {
    "resnet50": torchvision.models.resnet50,
    "mobilenetv2": torchvision.models.mobilenet_v2,
    "vit-b16": torchvision.models.vit_b_16,
}
TEXTS = {
    "minilm-l6": lambda: bert(6, 384, 12),
    "minilm-l12": lambda: bert(12, 384, 12),
    "bert-base": lambda: bert(12, 768, 12),
    "bert-large": lambda: bert(24, 1024, 16),
    "distilbert": lambda: transformers.DistilBertModel(transformers.DistilBertConfig()),
    "deberta-v3-base": deberta,
}


class Text(torch.nn.Module):
    """Ids and mask in, tuple out; the pooler stays, where there is one."""

    def __init__(self, model):
        super().__init__()
        model.set_attn_implementation("eager")
        self.m = model

    def forward(self, input_ids, attention_mask):
        return tuple(self.m(input_ids=input_ids, attention_mask=attention_mask, return_dict=False)[:2])


def build(name):
    """The model, inputs to trace it with, and their names."""
    if name in IMAGES:
        return IMAGES[name]().eval(), (torch.zeros(2, 3, 224, 224),), ["image"]
    ids = torch.ones(2, 16, dtype=torch.long)
    return Text(TEXTS[name]().eval()), (ids, ids.clone()), ["input_ids", "attention_mask"]


def randomize(model):
    torch.manual_seed(1)
    with torch.no_grad():
        for t in [*model.parameters(), *(b for b in model.buffers() if b.is_floating_point())]:
            t.copy_(torch.rand_like(t) * 0.1 + 0.01)


def export(name, exporter, path):
    model, inputs, names = build(name)
    randomize(model)
    text = len(inputs) == 2
    if exporter == "dynamo":
        batch, sequence = torch.export.Dim("batch_size", min=1, max=64), torch.export.Dim("sequence_length", min=2, max=512)
        shapes = ({0: batch, 1: sequence},) * 2 if text else ({0: torch.export.Dim("batch")},)
        torch.onnx.export(model, inputs, path, dynamo=True, input_names=names, dynamic_shapes=shapes, opset_version=18,
                          optimize=False, external_data=True)
    else:
        axes = {0: "batch_size", 1: "sequence_length"} if text else {0: "batch"}
        torch.onnx.export(model, inputs, path, dynamo=False, input_names=names, dynamic_axes=dict.fromkeys(names, axes),
                          opset_version=17, training=torch.onnx.TrainingMode.PRESERVE)


def strip(model):
    """Move what is large to a file that is not there, and drop what only people read."""
    place = 0
    for t in model.graph.initializer:
        size = math.prod(t.dims) * SIZES[t.data_type]
        if size < KEPT_BYTES and t.data_location != TensorProto.EXTERNAL:
            continue
        for field in ("raw_data", "float_data", "int64_data", "external_data"):
            t.ClearField(field)
        t.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "weights"), ("offset", place), ("length", size)):
            t.external_data.add(key=key, value=str(value))
        place += -(-size // 4096) * 4096
    for x in (model, model.graph, *model.graph.node, *model.graph.input, *model.graph.output, *model.graph.initializer):
        x.ClearField("doc_string")
        x.ClearField("metadata_props")
    model.graph.ClearField("value_info")
    return model


def main(wanted):
    for name in wanted or [p.name.removesuffix(".onnx.gz") for p in sorted(HERE.glob("*.onnx.gz"))]:
        architecture, exporter = name.rsplit(".", 1)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.onnx")
            export(architecture, exporter, str(path))
            model = strip(onnx.load(path, load_external_data=False))
        with gzip.GzipFile(HERE / (name + ".onnx.gz"), "wb", 9, mtime=0) as f:
            f.write(model.SerializeToString())


if __name__ == "__main__":
    main(sys.argv[1:])

#!/usr/bin/env python3
"""Writes encoder-decoder models of tests/import with the files and names of optimum's exports.

pip install torch==2.15.0 transformers==5.24.0 onnx==1.22.0 onnxruntime onnxscript
python3 tests/import/data/make_seq2seq_models.py

t5 has encoder_model.onnx and decoder_model_merged.onnx, of torch's exporter; bart has encoder_model.onnx,
decoder_model.onnx and decoder_with_past_model.onnx, of its TorchScript exporter. `prompts.json` has the tokens that
transformers chooses after each prompt, without a cache, and ONNX Runtime with the files. Its `beams` are the sequences
that beam search of transformers finds, best first, and their scores.
"""

import os
import tempfile

import numpy as np
import onnx
import onnxruntime
import torch
import transformers
from onnx import helper, numpy_helper
from torch import nn
from transformers.cache_utils import DynamicCache, EncoderDecoderCache

from make_models import FOLDER, write_json

PROMPTS = [[3, 14, 15, 9, 5, 6, 8], [5, 3, 20], [4, 4, 9, 21, 11]]
END, PADDING = 20, 24  # of beam search; no token of the vocabulary is padding
DYNAMIC = torch.export.Dim.DYNAMIC


class Encoder(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.encoder = model.get_encoder()

    def forward(self, input_ids, attention_mask):
        return self.encoder(input_ids=input_ids, attention_mask=attention_mask)[0]


class First(nn.Module):
    """The decoder without cached rows. Returns logits and all keys and values."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def decode(self, input_ids, states, mask, cache):
        result = self.model(
            decoder_input_ids=input_ids,
            encoder_outputs=(states,),
            attention_mask=mask,
            past_key_values=cache,
            use_cache=True,
        )
        return result.logits, result.past_key_values

    def forward(self, input_ids, encoder_hidden_states, encoder_attention_mask):
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        logits, cache = self.decode(input_ids, encoder_hidden_states, encoder_attention_mask, cache)
        layers = zip(cache.self_attention_cache.layers, cache.cross_attention_cache.layers)
        return logits, *[part for pair in layers for layer in pair for part in (layer.keys, layer.values)]


class Step(First):
    """The decoder with cached rows. Returns logits and the keys and values of its own tokens."""

    def forward(self, input_ids, encoder_attention_mask, past):
        own, source = DynamicCache(), DynamicCache()
        for i in range(len(past) // 4):
            own.update(past[4 * i], past[4 * i + 1], i)
            source.update(past[4 * i + 2], past[4 * i + 3], i)
        cache = EncoderDecoderCache(own, source)
        for i in range(len(past) // 4):
            cache.is_updated[i] = True
        states = past[2].new_zeros(past[2].shape[0], past[2].shape[2], self.model.config.d_model)
        logits, cache = self.decode(input_ids, states, encoder_attention_mask, cache)
        layers = cache.self_attention_cache.layers
        return logits, *[part for layer in layers for part in (layer.keys, layer.values)]


def cache_names(prefix, layers, sides=("decoder", "encoder")):
    return [f"{prefix}.{i}.{side}.{part}" for i in range(layers) for side in sides for part in ("key", "value")]


def stripped(model):
    """The model without texts about this machine's Python code and without shapes of intermediate values."""
    graphs = [model.graph]
    for graph in graphs:
        del graph.value_info[:]
        for node in graph.node:
            node.ClearField("doc_string")
            del node.metadata_props[:]
            graphs += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    return model


def export(module, inputs, outputs, axes, dynamo):
    """inputs: {name: example}, of which several may be a list of past rows; axes: {name: {axis: name}}."""
    examples, past = dict(inputs), [name for name in inputs if name.startswith("past_key_values")]
    arguments = [value for name, value in examples.items() if name not in past]
    shapes = [dict.fromkeys(axes[name], DYNAMIC) for name in examples if name not in past]
    if past:
        arguments.append([examples[name] for name in past])
        shapes.append([dict.fromkeys(axes[name], DYNAMIC) for name in past])
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = os.path.join(folder, "model.onnx")
        names = {"input_names": list(inputs), "output_names": outputs, "dynamo": dynamo}
        if dynamo:
            torch.onnx.export(
                module.eval(), tuple(arguments), path, dynamic_shapes=tuple(shapes), opset_version=18, **names
            )
        else:
            torch.onnx.export(module.eval(), tuple(arguments), path, dynamic_axes=axes, opset_version=17, **names)
        return stripped(onnx.load(path))


def export_files(model, layers, heads, dynamo):
    """The encoder, the decoder without cached rows, and that with them."""
    width, size = model.config.d_model, getattr(model.config, "d_kv", model.config.d_model // heads)
    batch, source, past = {0: "batch_size"}, "encoder_sequence_length", "past_decoder_sequence_length"
    length = "decoder_sequence_length"
    torch.manual_seed(3)
    ids, mask = torch.randint(3, 24, (2, 5)), torch.ones(2, 5, dtype=torch.int64)
    own = {**batch, 1: source}
    encoder = export(
        Encoder(model),
        {"input_ids": ids, "attention_mask": mask},
        ["last_hidden_state"],
        dict.fromkeys(("input_ids", "attention_mask", "last_hidden_state"), own),
        dynamo,
    )
    axes = {
        "input_ids": {**batch, 1: length},
        "encoder_hidden_states": own,
        "encoder_attention_mask": own,
        "logits": {**batch, 1: length},
    }
    presents = cache_names("present", layers)
    rows = {name: {**batch, 2: length if "decoder" in name else source} for name in presents}
    states = torch.randn(2, 5, width)
    first = export(
        First(model),
        {"input_ids": ids[:, :3], "encoder_hidden_states": states, "encoder_attention_mask": mask},
        ["logits", *presents],
        {**axes, **rows},
        dynamo,
    )
    names = cache_names("past_key_values", layers)
    cached = {name: torch.randn(2, heads, 3 if "decoder" in name else 5, size) for name in names}
    rows = {name: {**batch, 2: past if "decoder" in name else source + "_out"} for name in names}
    presents = cache_names("present", layers, ("decoder",))
    joined = {name: {**batch, 2: past + " + 1"} for name in presents}
    step = export(
        Step(model),
        {"input_ids": ids[:, :1], "encoder_attention_mask": mask, **cached},
        ["logits", *presents],
        {"input_ids": batch, "encoder_attention_mask": own, "logits": batch, **rows, **joined},
        dynamo,
    )
    return encoder, first, step


def renamed(model, prefix, shared):
    """Prefixes the names of values except inputs, and moves initializers to `shared`, by their bytes."""
    inputs, names = {value.name for value in model.graph.input}, {}
    for tensor in model.graph.initializer:
        key = (tensor.data_type, tuple(tensor.dims), numpy_helper.to_array(tensor).tobytes())
        if key not in shared:
            shared[key] = numpy_helper.from_array(numpy_helper.to_array(tensor), prefix + tensor.name)
        names[tensor.name] = shared[key].name
    del model.graph.initializer[:]
    for node in model.graph.node:
        node.name = prefix + node.name
        for values in (node.input, node.output):
            for i, name in enumerate(values):
                values[i] = name if not name or name in inputs else names.get(name, prefix + name)
    for output in model.graph.output:
        output.name = prefix + output.name
    return model.graph


def merged(first, step):
    """One decoder with an If on use_cache_branch. The branch with the cache has no keys and values of the encoder."""
    outputs = [output.name for output in first.graph.output]
    given = {value.name: value for model in (first, step) for value in model.graph.input}
    results = [onnx.ValueInfoProto.FromString(output.SerializeToString()) for output in first.graph.output]
    shared = {}
    otherwise, then = renamed(first, "first/", shared), renamed(step, "step/", shared)
    cached = {output.name: output for output in then.output}
    del then.output[:]
    for name, output in zip(outputs, otherwise.output):
        if f"step/{name}" not in cached:
            shape = [dim.dim_value for dim in output.type.tensor_type.shape.dim]  # 0 for sizes with names
            value = helper.make_tensor(name, output.type.tensor_type.elem_type, shape, [])
            then.node.append(helper.make_node("Constant", [], [f"step/{name}"], value=value))
            cached[f"step/{name}"] = onnx.ValueInfoProto.FromString(output.SerializeToString())
            cached[f"step/{name}"].name = f"step/{name}"
        then.output.append(cached[f"step/{name}"])
    branches = []
    for name, graph in (("then", then), ("otherwise", otherwise)):
        branches.append(helper.make_graph(list(graph.node), name, [], list(graph.output)))
    node = helper.make_node(
        "If", ["use_cache_branch"], outputs, then_branch=branches[0], else_branch=branches[1], name="optimum::if"
    )
    flag = helper.make_tensor_value_info("use_cache_branch", onnx.TensorProto.BOOL, [1])
    graph = helper.make_graph([node], "decoder", [*given.values(), flag], results, list(shared.values()))
    return helper.make_model(graph, opset_imports=list(first.opset_import), ir_version=first.ir_version)


def session(model):
    return onnxruntime.InferenceSession(model.SerializeToString())


def run(model, feeds):
    """Runs a file on those of the values that are its inputs. An input without a value has no rows."""
    for value in model.get_inputs():
        if value.name not in feeds:
            feeds[value.name] = np.zeros((1, value.shape[1], 0, value.shape[3]), np.float32)
    feeds = {value.name: feeds[value.name] for value in model.get_inputs()}
    return dict(zip([value.name for value in model.get_outputs()], model.run(None, feeds)))


def runtime_texts(encoder, first, step, start, count):
    encoder, first, step = session(encoder), session(first), session(step)
    texts = []
    for prompt in PROMPTS:
        mask = np.ones((1, len(prompt)), np.int64)
        states = run(encoder, {"input_ids": np.array([prompt]), "attention_mask": mask})["last_hidden_state"]
        feeds, text = {"encoder_attention_mask": mask, "encoder_hidden_states": states}, [start]
        for i in range(count):
            now = {"input_ids": np.array([text[-1:]]), "use_cache_branch": np.array([i > 0])}
            results = run(step if i else first, {**feeds, **now})
            feeds |= {key.replace("present", "past_key_values"): x for key, x in results.items() if x.size}
            text.append(int(results["logits"][0, -1].argmax()))
        texts.append(text[1:])
    return texts


@torch.no_grad()
def own_texts(model, count):
    texts = []
    for prompt in PROMPTS:
        text = [model.config.decoder_start_token_id]
        for _ in range(count):
            inputs = {"input_ids": torch.tensor([prompt]), "decoder_input_ids": torch.tensor([text])}
            text.append(int(model(**inputs, use_cache=False).logits[0, -1].argmax()))
        texts.append(text[1:])
    return texts


@torch.no_grad()
def own_beams(model, width=3, count=9):
    """The beams of each prompt without the start token. The end token is one that some of them contain."""
    start, found = model.config.decoder_start_token_id, {"width": width, "longest": count, "ids": [], "scores": []}
    found["end"] = END
    model.generation_config = transformers.GenerationConfig(
        num_beams=width,
        num_return_sequences=width,
        max_new_tokens=count,
        decoder_start_token_id=start,
        pad_token_id=PADDING,
        eos_token_id=END,
        return_dict_in_generate=True,
        output_scores=True,
    )
    for prompt in PROMPTS:
        result = model.generate(torch.tensor([prompt]))
        ids = [[token for token in row[1:] if token != PADDING] for row in result.sequences.tolist()]
        found["ids"].append(ids)
        found["scores"].append([round(score, 6) for score in result.sequences_scores.tolist()])
    return found


def write(name, model, files, decoders, count=12):
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder, exist_ok=True)
    for file, saved in files.items():
        onnx.checker.check_model(saved)
        onnx.save(saved, os.path.join(folder, file + ".onnx"))
    texts = own_texts(model, count)
    assert texts == runtime_texts(files["encoder_model"], *decoders, model.config.decoder_start_token_id, count)
    write_json(folder, "prompts.json", {"prompts": PROMPTS, "texts": texts, "beams": own_beams(model)})
    keys = ("decoder_start_token_id", "pad_token_id", "max_position_embeddings", "is_encoder_decoder", "model_type")
    config = {key: getattr(model.config, key) for key in keys if hasattr(model.config, key)}
    write_json(folder, "config.json", {**config, "eos_token_id": None})


def t5():
    torch.manual_seed(10)
    config = transformers.T5Config(
        vocab_size=24,
        d_model=16,
        d_kv=4,
        d_ff=24,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=16,
        initializer_factor=10.0,
        tie_word_embeddings=False,
    )
    model = transformers.T5ForConditionalGeneration(config).eval()
    encoder, first, step = export_files(model, 2, 4, dynamo=True)
    decoder = merged(first, step)
    write("t5", model, {"encoder_model": encoder, "decoder_model_merged": decoder}, (decoder, decoder))


def bart():
    torch.manual_seed(4)
    config = transformers.BartConfig(
        vocab_size=24,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        max_position_embeddings=32,
        init_std=0.6,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=2,
    )
    model = transformers.BartForConditionalGeneration(config).eval()
    encoder, first, step = export_files(model, 1, 4, dynamo=False)
    files = {"encoder_model": encoder, "decoder_model": first, "decoder_with_past_model": step}
    write("bart", model, files, (first, step))


if __name__ == "__main__":
    t5()
    bart()

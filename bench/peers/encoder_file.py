"""Writes an encoder of MiniLM's size with random weights as an ONNX file, with the nodes that PyTorch's exporter writes for a BERT:
python encoder_file.py FILE. Inputs: input_ids and attention_mask, i64 [batch, sequence]. Output: last_hidden_state, f32
[batch, sequence, 384]. Needs numpy and onnx."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, POSITIONS, WIDTH, HEADS, INNER, LAYERS = 30522, 512, 384, 12, 1536, 6


class Writer:
    def __init__(self):
        self.random = np.random.default_rng(1)
        self.nodes, self.initializers = [], []

    def node(self, op, *inputs, path='', **attributes):
        name = f"{path}/{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name + '_output_0'], name=name, **attributes))
        return name + '_output_0'

    def constant(self, value):
        name = f'constant_{len(self.initializers)}'
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, name, *shape, ones=False):
        value = self.random.normal(1 if ones else 0, 0.02, shape).astype(np.float32)
        self.initializers.append(numpy_helper.from_array(value, name))
        return name

    def linear(self, x, name, inner, outer, path):
        product = self.node('MatMul', x, self.weight(name + '.weight', inner, outer), path=path)
        return self.node('Add', self.weight(name + '.bias', outer), product, path=path)

    def norm(self, x, name, path):
        return self.node('LayerNormalization', x, self.weight(name + '.weight', WIDTH, ones=True), self.weight(name + '.bias', WIDTH),
                         path=path, axis=-1, epsilon=1e-12)

    def heads(self, x, path):
        split = self.node('Reshape', x, self.constant(np.array([0, 0, HEADS, WIDTH // HEADS])), path=path)
        return self.node('Transpose', split, path=path, perm=[0, 2, 1, 3])

    def layer(self, x, mask, number):
        name, path = f'encoder.layer.{number}', f'/encoder/layer.{number}'
        q, k, v = (self.heads(self.linear(x, f'{name}.attention.self.{part}', WIDTH, WIDTH, path), path)
                   for part in ('query', 'key', 'value'))
        scores = self.node('MatMul', q, self.node('Transpose', k, path=path, perm=[0, 1, 3, 2]), path=path)
        scaled = self.node('Div', scores, self.constant(np.float32(np.sqrt(WIDTH // HEADS))), path=path)
        weights = self.node('Softmax', self.node('Add', scaled, mask, path=path), path=path, axis=-1)
        mixed = self.node('Transpose', self.node('MatMul', weights, v, path=path), path=path, perm=[0, 2, 1, 3])
        joined = self.node('Reshape', mixed, self.constant(np.array([0, 0, WIDTH])), path=path)
        out = self.linear(joined, name + '.attention.output.dense', WIDTH, WIDTH, path)
        x = self.norm(self.node('Add', out, x, path=path), name + '.attention.output.LayerNorm', path)
        inner = self.linear(x, name + '.intermediate.dense', WIDTH, INNER, path)
        root = self.node('Div', inner, self.constant(np.float32(np.sqrt(2))), path=path)
        one = self.node('Add', self.node('Erf', root, path=path), self.constant(np.float32(1)), path=path)
        gelu = self.node('Mul', self.node('Mul', inner, one, path=path), self.constant(np.float32(0.5)), path=path)
        out = self.linear(gelu, name + '.output.dense', INNER, WIDTH, path)
        return self.norm(self.node('Add', out, x, path=path), name + '.output.LayerNorm', path)

    def embeddings(self):
        path = '/embeddings'
        words = self.node('Gather', self.weight('embeddings.word_embeddings.weight', VOCABULARY, WIDTH), 'input_ids', path=path)
        length = self.node('Gather', self.node('Shape', 'input_ids', path=path), self.constant(np.int64(1)), path=path, axis=0)
        ends = self.node('Unsqueeze', length, self.constant(np.array([0])), path=path)
        numbers = self.constant(np.arange(POSITIONS)[None])
        used = self.node('Slice', numbers, self.constant(np.array([0])), ends, self.constant(np.array([1])), path=path)
        positions = self.node('Gather', self.weight('embeddings.position_embeddings.weight', POSITIONS, WIDTH), used, path=path)
        return self.norm(self.node('Add', words, positions, path=path), 'embeddings.LayerNorm', path)

    def mask(self):
        wide = self.node('Unsqueeze', 'attention_mask', self.constant(np.array([1, 2])))
        hidden = self.node('Sub', self.constant(np.float32(1)), self.node('Cast', wide, to=TensorProto.FLOAT))
        return self.node('Mul', hidden, self.constant(np.finfo(np.float32).min))


def main():
    writer = Writer()
    mask, x = writer.mask(), writer.embeddings()
    for number in range(LAYERS):
        x = writer.layer(x, mask, number)
    writer.nodes.append(helper.make_node('Identity', [x], ['last_hidden_state']))
    sizes = ['batch', 'sequence']
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, sizes) for name in ('input_ids', 'attention_mask')]
    outputs = [helper.make_tensor_value_info('last_hidden_state', TensorProto.FLOAT, sizes + [WIDTH])]
    graph = helper.make_graph(writer.nodes, 'encoder', inputs, outputs, writer.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, sys.argv[1])


if __name__ == '__main__':
    main()

"""Writes a model of transformers with random weights as a directory, an ONNX file and a .pt2 file, or runs it as a process that
waits for commands (those of bench/workers/graph.cpp, after `open`):
  python imported_models.py write bert|gpt2|llama FOLDER
  python imported_models.py serve bert|gpt2|llama forward|step THREADS
A step is the forward pass, all gradients of the next-token loss, or of the mean square of differences, and fused AdamW."""
import json
import sys
import time

import torch
import transformers

OUTPUTS = {'bert': 'last_hidden_state', 'gpt2': 'logits', 'llama': 'logits'}


def make(kind):
    torch.manual_seed(1)
    if kind == 'bert':
        config = transformers.BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
                                         hidden_dropout_prob=0, attention_probs_dropout_prob=0)
        return transformers.BertModel(config, add_pooling_layer=False).eval()
    if kind == 'gpt2':
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)).eval()
    config = transformers.LlamaConfig(vocab_size=8000, hidden_size=512, intermediate_size=1376, num_hidden_layers=6, num_attention_heads=8,
                                      num_key_value_heads=4, max_position_embeddings=1024)
    return transformers.LlamaForCausalLM(config).eval()


class Outputs(torch.nn.Module):
    """A model as a function of token ids alone."""

    def __init__(self, model, kind):
        super().__init__()
        self.model, self.kind = model, kind

    def forward(self, input_ids):
        options = {} if self.kind == 'bert' else {'use_cache': False}
        return self.model(input_ids=input_ids, **options)[OUTPUTS[self.kind]]


def write(kind, folder):
    model = make(kind)
    model.save_pretrained(f'{folder}/{kind}')
    wrapped, ids = Outputs(model, kind), torch.randint(0, 8000, (3, 40))
    dims = ({0: torch.export.Dim('B', min=1, max=64), 1: torch.export.Dim('T', min=2, max=512)},)
    program = torch.export.export(wrapped, (ids,), dynamic_shapes=dims)
    torch.export.save(program, f'{folder}/{kind}.pt2')
    torch.onnx.export(program, (), f'{folder}/{kind}.onnx', output_names=[OUTPUTS[kind]], opset_version=18, dynamo=True, external_data=False)


def serve(kind, mode, threads):
    torch.set_num_threads(threads)
    model = make(kind)
    wrapped = Outputs(model, kind)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    ids, targets = None, None

    def step():
        optimizer.zero_grad(set_to_none=True)
        result = wrapped(ids)
        if kind == 'bert':
            loss = torch.nn.functional.mse_loss(result, targets)
        else:
            loss = torch.nn.functional.cross_entropy(result[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()

    def forward():
        with torch.inference_mode():
            wrapped(ids)

    print('{}', flush=True)
    for line in sys.stdin:
        words = line.split()
        answer = {}
        if words[0] == 'sizes':
            batch, length = (int(word.split('=')[1]) for word in words[1:])
            ids = torch.randint(0, 8000, (batch, length))
            if kind == 'bert':
                targets = torch.randn(batch, length, model.config.hidden_size)
        elif words[0] == 'run':
            answer['seconds'] = []
            for _ in range(int(words[1])):
                start = time.perf_counter()
                (step if mode == 'step' else forward)()
                answer['seconds'].append(time.perf_counter() - start)
        print(json.dumps(answer), flush=True)


if __name__ == '__main__':
    if sys.argv[1] == 'write':
        write(*sys.argv[2:])
    else:
        serve(sys.argv[2], sys.argv[3], int(sys.argv[4]))

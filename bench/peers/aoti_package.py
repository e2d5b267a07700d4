"""Writes a model of transformers with random weights as a directory and as a package of AOTInductor:
python aoti_package.py gpt2|minilm FOLDER. FOLDER gets model/ (config.json, model.safetensors) and model.pt2; batch and length are dynamic.
Prints the seconds of the compilation."""
import sys
import time

import torch
import transformers

SIZES = {'gpt2': {'batch': 4, 'length': 1024}, 'minilm': {'batch': 32, 'length': 512}}


class Result(torch.nn.Module):
    """A model as a function of token ids alone."""

    def __init__(self, model, output, **options):
        super().__init__()
        self.model, self.output, self.options = model, output, options

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, **self.options)[self.output]


def make(kind):
    torch.manual_seed(1)
    if kind == 'gpt2':
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
        return model, Result(model, 'logits', use_cache=False)
    config = transformers.BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    return model, Result(model, 'last_hidden_state')


def main():
    kind, folder = sys.argv[1:]
    model, wrapped = make(kind)
    model.save_pretrained(f'{folder}/model')
    dims = {0: torch.export.Dim('B', min=1, max=SIZES[kind]['batch']), 1: torch.export.Dim('T', min=2, max=SIZES[kind]['length'])}
    with torch.inference_mode():
        ids = torch.randint(0, 30000, (3, 40))
        program = torch.export.export(wrapped, (ids,), dynamic_shapes=(dims,))
        start = time.perf_counter()
        torch._inductor.aoti_compile_and_package(program, package_path=f'{folder}/model.pt2')
        print(time.perf_counter() - start)


if __name__ == '__main__':
    main()

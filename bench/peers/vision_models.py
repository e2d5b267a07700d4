"""Writes a vision model of timm with random weights as a .pt2 file, or runs it as a process that waits for commands
(workers.Worker; `images B` gives the number of images):
  python vision_models.py write MODEL BATCH FILE
  python vision_models.py serve MODEL forward|step THREADS
Layers of training such as dropout are off. A step is the forward pass, all gradients of the cross entropy, and fused AdamW."""
import sys

import serve
import timm
import torch


def make(name):
    torch.manual_seed(1)
    return timm.create_model(name, pretrained=False).eval()


def images(model, batch):
    return torch.randn(batch, *model.default_cfg['input_size'])


def write(name, batch, file):
    model = make(name)
    with torch.no_grad():
        torch.export.save(torch.export.export(model, (images(model, int(batch)),)), file)


def run_commands(name, mode, threads):
    model = make(name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)

    def opened(words):
        batch = int(words[1])
        inputs, labels = images(model, batch), torch.randint(0, 1000, (batch,))

        def step():
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()

        def forward():
            with torch.inference_mode():
                model(inputs)
        return step if mode == 'step' else forward, {}

    serve.serve(threads, opened)


if __name__ == '__main__':
    if sys.argv[1] == 'write':
        write(*sys.argv[2:])
    else:
        run_commands(sys.argv[2], sys.argv[3], int(sys.argv[4]))

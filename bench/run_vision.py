#!/usr/bin/env python3
"""Vision models of timm, imported from .pt2 files: forward passes and training steps in turns with PyTorch.

Usage: bench/run_vision.py [--build FOLDER] [--peers FOLDER] [--threads N] [--rounds N] [MODEL:BATCH ...]
PEERS is a virtual environment with torch and timm (PyPI). f32, random weights, images of the model's usual size. A step has the
cross entropy of random labels, and AdamW without clipping. Prints medians over the rounds.
"""
import pathlib
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here / 'peers'))
from workers import Worker, case_parser, machine, measure_in_turns, peer_environment  # noqa: E402

CASES = ['resnet18:4', 'resnet50:4', 'mobilenetv3_large_100:4', 'efficientnet_b0:4', 'convnext_tiny:4', 'vit_small_patch16_224:4',
         'swin_tiny_patch4_window7_224:4']


def measure(model, batch, folder, options):
    python, lathe = str(options.peers / 'bin/python'), options.build / 'tools/lathe'
    program = folder / f'{model}.pt2'
    subprocess.run([python, here / 'peers/vision_models.py', 'write', model, batch, program], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    times = []
    for mode, command in (('forward', []), ('step', ['--loss', 'cross_entropy:output,labels', '--step'])):
        graph = folder / f'{mode}.lathe'
        subprocess.run([lathe, 'model', program, *command, '-o', graph], check=True)
        own = Worker('Lathe', [str(options.build / 'bench/bench_graph'), str(options.threads)])
        own.ask(f'open {graph}')
        own.ask('sizes')
        peer = Worker('PyTorch', [python, str(here / 'peers/vision_models.py'), 'serve', model, mode, str(options.threads)],
                      peer_environment(options.peers, options.threads))
        peer.ask(f'images {batch}')
        took = measure_in_turns([own, peer], options)
        times.append((1e3 * took['Lathe'], took['PyTorch'] / took['Lathe']))
        for worker in (own, peer):
            worker.close()
    print(f'| {model}, {batch} | ' + ' | '.join(f'{own:.1f} | {ratio:.2f}' for own, ratio in times) + ' |', flush=True)


def main():
    options = case_parser(__doc__, CASES).parse_args()
    print(f'{machine()}, {options.threads} threads')
    print('| model, batch | forward, ms | PyTorch / Lathe | step, ms | PyTorch / Lathe |')
    print('|---|---|---|---|---|')
    with tempfile.TemporaryDirectory() as name:
        for case in options.cases:
            model, batch = case.split(':')
            measure(model, batch, pathlib.Path(name), options)


if __name__ == '__main__':
    main()

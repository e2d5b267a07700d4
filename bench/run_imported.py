#!/usr/bin/env python3
"""Imported models and Lathe's own descriptions of the same models, in turns with PyTorch: forward passes and training steps.

Usage: bench/run_imported.py [--build FOLDER] [--peers FOLDER] [--threads N] [--rounds N] [MODEL:BATCHxLENGTH ...]
PEERS is a virtual environment with torch, transformers, onnx and onnxscript (PyPI). An encoder of MiniLM's size, GPT-2 124M and a small
Llama, f32, random weights, sizes that only a run knows. A step of a decoder has the next-token loss; that of the encoder, the mean
square of the difference between its last states and targets. AdamW without clipping. Prints medians over the rounds.
"""
import pathlib
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here / 'peers'))
from workers import Worker, case_parser, machine, measure_in_turns, peer_environment  # noqa: E402

CASES = ['bert:8x128', 'llama:4x128', 'gpt2:4x64']
OUTPUTS = {'bert': 'last_hidden_state', 'gpt2': 'logits', 'llama': 'logits'}
PARTS = {'bert': 'states', 'gpt2': 'logits', 'llama': 'logits'}


def graphs(kind, folder, lathe):
    """Writes the graphs of a model as text: {(mode, source): file}."""
    files = {}

    def write(mode, source, *command):
        files[mode, source] = folder / f'{kind}-{mode}-{source}.lathe'
        subprocess.run([lathe, 'model', *command, '-o', files[mode, source]], check=True)

    write('forward', 'own', folder / kind, '--part', PARTS[kind])
    for source in ('onnx', 'pt2'):
        write('forward', source, folder / f'{kind}.{source}')
    step = ('--step', '--no-grad-norm')
    for source, output in (('own', OUTPUTS[kind]), ('onnx', OUTPUTS[kind]), ('pt2', 'output')):
        if kind == 'bert':
            write('step', source, files['forward', source], '--loss', f'mse:{output},targets', *step)
        elif source == 'own':  # a directory's own step would clip gradients, which PyTorch's here does not
            loss = folder / f'{kind}-loss.lathe'
            subprocess.run([lathe, 'model', folder / kind, '--loss', '-o', loss], check=True)
            write('step', source, loss, '--loss', 'output:loss', *step)
        else:
            write('step', source, folder / f'{kind}.{source}', '--loss', f'next_token:{output},input_ids', *step)
    return files


def dims_of(file):
    """Names of the first two sizes of the token ids, from a line such as 'input %input_ids: i64[B, T]'."""
    with open(file, encoding='utf-8') as text:
        line = next(line for line in text if 'input %input_ids:' in line)
    return [name.strip() for name in line.split('[')[1].split(']')[0].split(',')]


def measure(kind, size, files, options):
    python = str(options.peers / 'bin/python')
    sizes = size.split('x')
    for mode in ('forward', 'step'):
        sources = [source for of, source in files if of == mode]
        workers = []
        for source in sources:
            worker = Worker(source, [str(options.build / 'bench/bench_graph'), str(options.threads)])
            file = files[mode, source]
            worker.ask(f'open {file}')
            worker.ask('sizes ' + ' '.join(f'{name}={number}' for name, number in zip(dims_of(file), sizes)))
            workers.append(worker)
        peer = Worker('PyTorch', [python, str(here / 'peers/imported_models.py'), 'serve', kind, mode, str(options.threads)],
                      peer_environment(options.peers, options.threads))
        peer.ask('sizes ' + ' '.join(f'{name}={number}' for name, number in zip('BT', sizes)))
        workers.append(peer)
        took = measure_in_turns(workers, options)
        own, onnx, pt2, torch = (1e3 * took[name] for name in ('own', 'onnx', 'pt2', 'PyTorch'))
        print(f'| {kind}, {size}, {mode} | {own:.2f} | {onnx / own:.3f} | {pt2 / own:.3f} | {torch / own:.2f} |', flush=True)
        for worker in workers:
            worker.close()


def main():
    options = case_parser(__doc__, CASES).parse_args()
    print(f'{machine()}, {options.threads} threads')
    print('| model, batch x length | own description, ms | from ONNX / own | from .pt2 / own | PyTorch / own |')
    print('|---|---|---|---|---|')
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for case in options.cases:
            kind, size = case.split(':')
            subprocess.run([options.peers / 'bin/python', here / 'peers/imported_models.py', 'write', kind, folder], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            measure(kind, size, graphs(kind, folder, options.build / 'tools/lathe'), options)


if __name__ == '__main__':
    main()

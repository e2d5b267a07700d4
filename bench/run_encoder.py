#!/usr/bin/env python3
"""An encoder of MiniLM's size from an ONNX file: Lathe, ONNX Runtime and OpenVINO in turns.

Usage: bench/run_encoder.py [--build FOLDER] [--peers FOLDER] [--threads N] [--rounds N] [--precision f32|bf16] [BATCHxLENGTH ...]
PEERS is a virtual environment with numpy, onnx, onnxruntime and openvino (PyPI). Random weights in f32; with bf16, Lathe and OpenVINO multiply in
bf16, while ONNX Runtime stays in f32 because its CPU provider has no such matmul. Prints medians over the rounds, and fails if results differ from
ONNX Runtime's by more than 1e-4, or 0.1 with bf16.
"""
import pathlib
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here / 'peers'))
from workers import Worker, case_parser, machine, measure_in_turns  # noqa: E402

SIZES = ['1x16', '1x128', '8x128', '32x128', '8x512']


def flops(batch, length):
    width, inner, layers = 384, 1536, 6
    return batch * length * layers * (2 * (4 * width * width + 2 * width * inner) + 4 * length * width)


def main():
    parser = case_parser(__doc__, SIZES)
    parser.add_argument('--precision', choices=['f32', 'bf16'], default='f32')
    options = parser.parse_args()
    python = str(options.peers / 'bin/python')
    print(f'{machine()}, {options.threads} threads, {options.precision}')
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / 'encoder.onnx'
        subprocess.run([python, here / 'peers/encoder_file.py', file], check=True)
        own = Worker('Lathe', [str(options.build / 'bench/bench_encoder'), str(options.threads)])
        workers = [own] + [Worker(name, [python, str(here / 'peers/encoder_worker.py'), name, str(options.threads)])
                           for name in ('onnxruntime', 'openvino')]
        for worker in workers:
            worker.ask(f'open {file} {options.precision}')
        print('| batch x length | Lathe ms | GFLOP/s | ONNX Runtime ms | OpenVINO ms | better / Lathe |')
        print('|---|---|---|---|---|---|')
        for size in options.cases:
            batch, length = map(int, size.split('x'))
            values = {worker.name: worker.ask(f'sizes {batch} {length}')['values'] for worker in workers}
            for name in ('Lathe', 'openvino'):
                worst = max(abs(a - b) for a, b in zip(values[name], values['onnxruntime']))
                if worst > {'f32': 1e-4, 'bf16': 0.1}[options.precision]:
                    sys.exit(f'{size}: the results of {name} differ from those of ONNX Runtime by {worst}')
            took = measure_in_turns(workers, options)
            lathe, *peers = (took[worker.name] for worker in workers)
            print(f'| {size} | {1e3 * lathe:.2f} | {flops(batch, length) / lathe * 1e-9:.0f} | '
                  + ' | '.join(f'{1e3 * seconds:.2f}' for seconds in peers) + f' | {min(peers) / lathe:.2f} |', flush=True)


if __name__ == '__main__':
    main()

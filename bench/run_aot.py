#!/usr/bin/env python3
"""Models compiled ahead of time: C libraries of `lathe compile`, the same graphs compiled in a process, and packages of AOTInductor,
in turns.

Usage: bench/run_aot.py [--build FOLDER] [--peers FOLDER] [--threads N] [--rounds N] [MODEL:BATCHxLENGTH ...]
PEERS is a virtual environment with torch and transformers (PyPI). Forward passes of GPT-2 124M (logits) and an encoder of
MiniLM's size, f32, random weights, sizes that only a call knows. The programs are native. Prints medians over the rounds, and
fails if results differ by more than 1e-3.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here / 'peers'))
from workers import Worker, case_parser, machine, measure_in_turns, median, peer_environment  # noqa: E402

# Sizes, part, output and its last size.
MODELS = {'gpt2': ('B=4,T=1024', 'logits', 'logits', 50257), 'minilm': ('B=32,T=512', 'states', 'last_hidden_state', 384)}
CASES = ['gpt2:1x64', 'gpt2:4x64', 'gpt2:1x512', 'minilm:1x16', 'minilm:1x128', 'minilm:8x128']


def call(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class Lathe:
    name = 'Lathe'

    def __init__(self, kind, folder, options):
        most, part, output, width = MODELS[kind]
        command = [options.build / 'tools/lathe', 'compile', folder / 'model', '--part', part, '--prefix', 'model', '--max', most,
                   '--target', options.target, '--emit', 'archive,header,helpers', '--packed-weights', options.packed_weights]
        self.compilation = seconds(lambda: call(*command, '--embed-weights', '-o', folder / 'library'))
        self.size, self.program = (folder / 'library/libmodel.a').stat().st_size, folder / 'lathe_program'
        call('cc', '-O2', f'-DMODEL_OUTPUT={output}', f'-DMODEL_WIDTH={width}', f'-I{folder}/library', here / 'workers/c_library.c',
             folder / 'library/libmodel.a', '-o', self.program, '-lm', '-lpthread')

    def start(self, size, options):
        return Worker(self.name, [self.program, str(options.threads), *size])


class Jit:
    """The graph in a process with the compiler. Its code is for the CPU that it runs on."""
    name = 'JIT'

    def __init__(self, kind, folder, options):
        part = MODELS[kind][1]
        self.file, self.dims = folder / 'model.lathe', [size.split('=')[0] for size in MODELS[kind][0].split(',')]
        call(options.build / 'tools/lathe', 'model', folder / 'model', '--part', part, '-o', self.file)

    def start(self, size, options):
        worker = Worker(self.name, [options.build / 'bench/bench_graph', str(options.threads)])
        worker.ask(f'open {self.file}')
        worker.ask('sizes ' + ' '.join(f'{name}={number}' for name, number in zip(self.dims, size)))
        return worker


class AotInductor:
    name = 'AOTInductor'

    def __init__(self, kind, folder, options):
        python, self.package = options.peers / 'bin/python', folder / 'model.pt2'
        self.environment = peer_environment(options.peers, options.threads)
        self.compilation = float(call(python, here / 'peers/aoti_package.py', kind, folder, env={**os.environ, **self.environment},
                                      stderr=subprocess.DEVNULL))
        torch = pathlib.Path(call(python, '-c', 'import torch; print(torch.__path__[0])').strip())
        self.program = folder / 'aoti_program'
        call('c++', '-O2', '-std=c++20', f'-I{torch}/include', f'-I{torch}/include/torch/csrc/api/include', here / 'peers/aoti_worker.cpp',
             f'-L{torch}/lib', f'-Wl,-rpath,{torch}/lib', '-Wl,--no-as-needed', '-ltorch', '-ltorch_cpu', '-lc10', '-o', self.program)
        self.size = self.package.stat().st_size

    def start(self, size, options):
        return Worker(self.name, [self.program, str(options.threads), *size, self.package], self.environment)


def libraries(program):
    """Bytes and number of the shared libraries that a program loads at its start, without those of the C and C++ runtime."""
    paths = [line.split('=> ')[1].split(' (')[0] for line in call('ldd', program).splitlines() if '=> /' in line]
    runtime = ('libc.', 'libm.', 'libstdc++', 'libgcc_s', 'libpthread', 'libdl', 'librt')
    sizes = [path.stat().st_size for path in map(pathlib.Path, paths) if not path.name.startswith(runtime)]
    return len(sizes), sum(sizes)


def measure(kind, sizes, folder, options):
    # AotInductor writes the directory of the model, which Lathe reads.
    peer = AotInductor(kind, folder, options)
    jit = Jit(kind, folder, options)
    programs, weights = [Lathe(kind, folder, options), peer], (folder / 'model/model.safetensors').stat().st_size
    for program in programs:
        count, size = libraries(program.program)
        print(f'{kind}, {program.name}: compiled in {program.compilation:.1f} s, {program.size / 1e6:.2f} MB with {weights / 1e6:.2f} MB of '
              f'weights, {count} shared libraries of {size / 1e6:.0f} MB', flush=True)
    for size in sizes:
        starts = {program.name: [] for program in programs}
        for _ in range(options.rounds):
            for program in programs:
                before = time.perf_counter()
                worker = program.start(size.split('x'), options)
                starts[program.name].append(time.perf_counter() - before)
                worker.close()
        workers = [program.start(size.split('x'), options) for program in programs]
        worst = max(abs(a - b) for a, b in zip(*(worker.ready['values'] for worker in workers)))
        if not worst <= 1e-3:
            sys.exit(f'{kind} {size}: results differ by {worst}')
        workers.append(jit.start(size.split('x'), options))
        took = measure_in_turns(workers, options)
        lathe, aoti, own = (1e3 * took[worker.name] for worker in workers)
        first = [1e3 * median(starts[program.name]) for program in programs]
        print(f'| {kind}, {size} | {lathe:.2f} | {lathe / own:.2f} | {aoti:.2f} | {aoti / lathe:.2f} | {first[0]:.0f} | '
              f'{first[1]:.0f} |', flush=True)
        for worker in workers:
            worker.close()


def main():
    parser = case_parser(__doc__, CASES)
    parser.add_argument('--packed-weights', default='off', help='of lathe compile; off: each run packs weights')
    parser.add_argument('--target', default='x86-64-v4', help='CPU level of the library')
    options = parser.parse_args()
    print(f'{machine()}, {options.threads} threads')
    print('| model, batch x length | library ms | library / JIT | AOTInductor ms | AOTInductor / library | library, start to first '
          'result, ms | AOTInductor |')
    print('|---|---|---|---|---|---|---|')
    for kind in MODELS:
        sizes = [case.split(':')[1] for case in options.cases if case.startswith(kind + ':')]
        if not sizes:
            continue
        folder = pathlib.Path(tempfile.mkdtemp())
        try:
            measure(kind, sizes, folder, options)
        finally:
            shutil.rmtree(folder)


if __name__ == '__main__':
    main()

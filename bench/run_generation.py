#!/usr/bin/env python3
"""Prompts and tokens of Lathe and of llama.cpp, in turns: a Llama-shaped model of GPT-2 124M's size, random weights.

Usage: bench/run_generation.py [--build FOLDER] [--threads N] [--rounds N] [--folder FOLDER] [--prompt N] [--tokens N]
Needs numpy, gguf and llama-cpp-python (PyPI) for the peer; without them Lathe runs alone. Prints medians over the rounds, and the
best beside them. Both compute in the dtype of the weights; q8 is made of the bf16 directory and
computed in f32, beside llama.cpp's Q8_0. The prompt as a share of the FMA peak, probed in each round; decode as a share of the read
bandwidth, probed before and after each few tokens, for the memory of a shared machine changes its speed within a second: as a share of the
median of a probe's bursts, and of their best in brackets.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here / 'peers'))
import llama_files  # noqa: E402

SLICE = 4  # tokens between two probes of the memory


class Lathe:
    name = 'lathe'

    def __init__(self, build, folder, dtype, threads):
        how = ['bf16', '--dtype', 'f32', '--weights', 'q8'] if dtype == 'q8' else [dtype, '--dtype', dtype]
        self.process = subprocess.Popen([build / 'bench/bench_generation', folder / how[0], *how[1:], '--threads', str(threads)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, text):
        self.process.stdin.write(text + '\n')
        self.process.stdin.flush()
        return [float(word) for word in self.process.stdout.readline().split()]

    def prompt(self, count):
        return self.ask(f'prompt {count}')[0]

    def steps(self, count):
        return self.ask(f'steps {count}')[0]


class LlamaCpp:
    name = 'llama.cpp'

    def __init__(self, folder, dtype, threads):
        import llama_cpp
        self.llama = llama_cpp.Llama(str(folder / f'{dtype}.gguf'), n_ctx=1024, n_threads=threads, n_threads_batch=threads, n_batch=512,
                                     n_ubatch=512, verbose=False, use_mmap=False)

    def prompt(self, count):
        import time
        self.llama.reset()
        tokens = [(i * 7919 + 13) % llama_files.CONFIG['vocab_size'] for i in range(count)]
        start = time.perf_counter()
        self.llama.eval(tokens)
        return time.perf_counter() - start

    def steps(self, count):
        import time
        start = time.perf_counter()
        for i in range(count):
            self.llama.eval([(i * 31 + 7) % llama_files.CONFIG['vocab_size']])
        return time.perf_counter() - start


def flops(count):
    c = llama_files.CONFIG
    d, f, layers = c['hidden_size'], c['intermediate_size'], c['num_hidden_layers']
    return layers * (2 * count * (4 * d * d + 3 * d * f) + 4 * count * (count + 1) / 2 * d) + 2 * d * c['vocab_size']


def step_bytes(dtype, length):
    c = llama_files.CONFIG
    weights = sum(one[2][0] * (one[2][1] if len(one[2]) > 1 else 1) for one in llama_files.shapes())
    cache = 2 * c['num_hidden_layers'] * length * c['hidden_size']
    size = {'f32': 4, 'bf16': 2}
    return weights * 8.5 / 8 + cache * 4 if dtype == 'q8' else (weights + cache) * size[dtype]


def programs(options, dtype):
    found = [Lathe(options.build, options.folder, dtype, options.threads)]
    try:
        found.append(LlamaCpp(options.folder, dtype, options.threads))
    except ImportError:
        print('llama-cpp-python is not installed: Lathe alone')
    return found


def prepare(folder):
    for dtype in ('f32', 'bf16', 'q8'):
        if dtype != 'q8' and not (folder / dtype / 'model.safetensors').exists():
            llama_files.write_directory(folder / dtype, dtype)
        if not (folder / f'{dtype}.gguf').exists():
            try:
                llama_files.write_gguf(folder / f'{dtype}.gguf', dtype)
            except ImportError:
                pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', type=pathlib.Path, default=here.parent / 'build')
    parser.add_argument('--folder', type=pathlib.Path, default=here.parent / 'build/bench-models', help='where the models are made')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--prompt', type=int, default=512)
    parser.add_argument('--tokens', type=int, default=64)
    options = parser.parse_args()
    prepare(options.folder)
    print('| dtype | program | prompt ms (best) | of FMA peak | ms a token (best) | of read bandwidth | prompt, times Lathe | token, times Lathe |')
    print('|---|---|---|---|---|---|---|---|')
    for dtype in ('f32', 'bf16', 'q8'):
        running = programs(options, dtype)
        times = {p.name: ([], []) for p in running}
        peaks, bandwidths, shares = [], [], {p.name: [] for p in running}
        for p in running:  # compiles, warms up
            p.prompt(options.prompt), p.steps(4)
        for _ in range(options.rounds):
            peaks.append(running[0].ask('peak')[0])
            for p in running:
                times[p.name][0].append(p.prompt(options.prompt))
                probe = running[0].ask('bandwidth')
                for first in range(0, options.tokens, SLICE):
                    before, token, probe = probe, p.steps(SLICE) / SLICE, running[0].ask('bandwidth')
                    times[p.name][1].append(token)
                    rate = step_bytes(dtype, options.prompt + first + SLICE / 2) / token
                    shares[p.name].append([rate * 2 / (a + b) for a, b in zip(before, probe)])
                    bandwidths.append(probe[0])
        fma = statistics.median(peaks)
        own = [statistics.median(t) for t in times['lathe']]
        for name, (prompt, token) in times.items():
            p, t = statistics.median(prompt), statistics.median(token)
            rate = flops(options.prompt) / p / fma
            read, of_best = map(statistics.median, zip(*shares[name]))
            print(f'| {dtype} | {name} | {p * 1e3:.0f} ({min(prompt) * 1e3:.0f}) | {rate:.0%} | {t * 1e3:.2f} ({min(token) * 1e3:.2f}) | '
                  f'{read:.0%} ({of_best:.0%}) | {p / own[0]:.2f} | {t / own[1]:.2f} |', flush=True)
        print(f'  {dtype}: FMA peak {fma / 1e9:.0f} GFLOP/s, read bandwidth {min(bandwidths) / 1e9:.0f} to {max(bandwidths) / 1e9:.0f} GB/s, '
              f'{options.threads} threads')


if __name__ == '__main__':
    main()

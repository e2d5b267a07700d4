#!/usr/bin/env python3
"""Recurrent layers and recurrences of Lathe and of PyTorch, in turns, and the time to compile them by length.

Usage: bench/run_recurrent.py [--build FOLDER] [--peers FOLDER] [layers] [recurrences] [compile]
The peers are torch.nn.LSTM and GRU, the chunked gated delta rule of transformers, and the paper's listing of
state-space duality.
"""
import argparse
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here / 'peers'))
from workers import (Worker, add_common_options, machine, measure_in_turns, median,  # noqa: E402
                     peer_environment, undisturbed)

# kind, batch, length, then in and hidden, or heads and the size of one
LAYERS = {'LSTM, 256 steps': ('lstm', 32, 256, 256, 256), 'GRU, 256 steps': ('gru', 32, 256, 256, 256)}
RECURRENCES = {'gated delta rule': ('delta', 2, 2048, 8, 64), 'state-space duality': ('space', 2, 2048, 8, 64)}


def compare(title, cases, kinds, options):
    workers = [start_lathe(options)] + [start_torch(kind, options) for kind in kinds]
    own, *peers = (w.name for w in workers)
    print(f'\n{title}\n')
    print('| case | pass | Lathe ms | ' + ' | '.join(f'{p} ms | {p} / Lathe' for p in peers) + ' |')
    print('|---' * (3 + 2 * len(peers)) + '|')
    for name, shape in cases.items():
        for train in (0, 1):
            for worker in workers:
                worker.ask(' '.join(map(str, (*shape, train))))
            took = measure_in_turns(workers, options, first_runs=2)
            row = f"| {name} | {'training step' if train else 'forward'} | {1e3 * took[own]:.2f} "
            for peer in peers:
                row += f'| {1e3 * took[peer]:.2f} | {took[peer] / took[own]:.2f} '
            print(row + '|', flush=True)
    for worker in workers:
        worker.close()


def layers(options):
    # torch.compile leaves torch.nn.LSTM and GRU as they are.
    compare('Recurrent layers', LAYERS, ['eager'], options)


def recurrences(options):
    compare('Recurrences in chunks', RECURRENCES, ['eager'] + (['compile'] if options.compiled else []), options)


def compile_time(options):
    worker = start_lathe(options)
    lengths = (64, 4096)
    print('\nSeconds to compile a training step\n')
    print('| case | ' + ' | '.join(f'T = {n}' for n in lengths) + ' |')
    print('|---' * (1 + len(lengths)) + '|')
    for name, (kind, batch, _, *sizes) in {**LAYERS, **RECURRENCES}.items():
        took = {n: [] for n in lengths}
        for _ in range(options.rounds):
            for n in lengths:
                with undisturbed([worker], options.lock, options.realtime):
                    took[n].append(worker.ask(' '.join(map(str, (kind, batch, n, *sizes, 1))))['compile'])
        print(f"| {name.split(',')[0]} | " + ' | '.join(f'{median(took[n]):.2f}' for n in lengths) + ' |', flush=True)
    worker.close()


def start_lathe(options):
    return Worker('Lathe', [str(options.build / 'bench/bench_recurrent'), str(options.threads)])


def start_torch(kind, options):
    return Worker({'eager': 'PyTorch', 'compile': 'torch.compile'}[kind],
                  [str(options.peers / 'bin/python'), str(here / 'peers/recurrent_worker.py'), kind,
                   str(options.threads)], peer_environment(options.peers, options.threads))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_options(parser)
    parser.add_argument('--budget', type=float, default=2, help='seconds of runs of each program in one case')
    parser.add_argument('--compiled', action='store_true', help='run torch.compile too')
    parser.add_argument('what', nargs='*', default=['layers', 'recurrences', 'compile'])
    options = parser.parse_args()
    print(f'{machine()}, {options.threads} threads')
    for what in options.what:
        {'layers': layers, 'recurrences': recurrences, 'compile': compile_time}[what](options)


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
"""Attention, convolutions and memory-bound ops of Lathe and of PyTorch, in turns.

Usage: bench/run_ops.py [--build FOLDER] [--peers FOLDER] [attention] [convolution] [memory]
Attention is softmax(q k' / sqrt(d)) v written out in Lathe, and scaled_dot_product_attention in PyTorch. Backward
alone is the difference of both passes and the forward one. Memory-bound ops are those of bench_memory_bound, beside the
time that moving their bytes takes; torch.compile runs them too.
"""
import argparse
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here / 'peers'))
from workers import (Worker, add_common_options, machine, measure_in_turns, median,  # noqa: E402
                     peer_environment, undisturbed)

MEMORY = {'softmax': (32768, 1024), 'softmax backward': (32768, 1024), 'layer norm': (65536, 768),
          'layer norm backward': (65536, 768), 'rms norm': (65536, 768), 'rms norm backward': (65536, 768),
          'gelu': (16384, 3072), 'gelu backward': (16384, 3072), 'cross entropy': (1024, 50257),
          'cross entropy + gradient': (1024, 50257), 'AdamW': (50257, 768), 'global norm': (50257, 768),
          'embedding': (65536, 768), 'embedding backward': (65536, 768), 'transpose': (1024, 1024),
          'transpose and add': (1024, 1024), 'take along': (1024, 1024)}


def measure(workers, options):
    """Median seconds of each worker's open case, and the peak."""
    peaks = []
    seconds = measure_in_turns(workers, options, before_round=lambda: peaks.append(workers[0].ask('peak')['peak']))
    return seconds, median(peaks)


def attention_case(workers, options, length, d, causal):
    """Seconds by program and pass, work by pass, and the peak."""
    seconds, flops, peak = {}, {}, 0
    for direction, backward in (('forward', 0), ('both', 1)):
        for worker in workers:
            answer = worker.ask(f'attention {options.batch} {options.heads} {length} {d} {causal} {backward}')
            flops.setdefault(direction, answer.get('flops'))
        took, peak = measure(workers, options)
        for worker in workers:
            seconds[worker.name, direction] = took[worker.name]
    return seconds, flops, peak


def attention(options):
    workers = [start_lathe(options), start_torch('eager', options)]
    own, peer = (w.name for w in workers)
    print(f'\nAttention, B={options.batch} h={options.heads}\n')
    print('| d | S | causal | forward ms | of peak | backward ms | of peak | SDPA forward ms | SDPA both ms | '
          'SDPA / Lathe, both |')
    print('|---|---|---|---|---|---|---|---|---|---|')
    for d in (64, 128):
        for causal in (1, 0):
            for length in options.lengths:
                seconds, flops, peak = attention_case(workers, options, length, d, causal)
                forward, both = seconds[own, 'forward'], seconds[own, 'both']
                backward = max(both - forward, 1e-9)
                print(f"| {d} | {length} | {'yes' if causal else 'no'} | {1e3 * forward:.2f} | "
                      f"{100 * flops['forward'] / forward / peak:.0f}% | {1e3 * backward:.2f} | "
                      f"{100 * (flops['both'] - flops['forward']) / backward / peak:.0f}% | "
                      f"{1e3 * seconds[peer, 'forward']:.2f} | {1e3 * seconds[peer, 'both']:.2f} | "
                      f"{seconds[peer, 'both'] / both:.2f} |", flush=True)
    for worker in workers:
        worker.close()


# dims, batch, in, out, size, kernel, stride, padding
CONVOLUTIONS = {'ResNet 64, 56 x 56': (2, 8, 64, 64, 56, 3, 1, 1), 'ResNet 128, 28 x 28': (2, 8, 128, 128, 28, 3, 1, 1),
                'ResNet 256, 14 x 14': (2, 8, 256, 256, 14, 3, 1, 1), 'stride 2': (2, 8, 128, 128, 28, 3, 2, 1),
                'patches of ViT': (2, 8, 3, 768, 224, 16, 16, 0), 'Whisper stem, first': (1, 1, 80, 384, 3000, 3, 1, 1),
                'Whisper stem, second': (1, 1, 384, 384, 3000, 3, 2, 1)}


def convolution(options):
    workers = [start_lathe(options), start_torch('eager', options)]
    own, peer = (w.name for w in workers)
    print('\nConvolutions with relu\n')
    print('| case | forward ms | of peak | PyTorch / Lathe | forward and backward ms | of peak | PyTorch / Lathe |')
    print('|---|---|---|---|---|---|---|')
    for name, shape in CONVOLUTIONS.items():
        row = f'| {name} '
        for backward in (0, 1):
            answers = [w.ask('convolution ' + ' '.join(map(str, (*shape, backward)))) for w in workers]
            took, peak = measure(workers, options)
            row += (f"| {1e3 * took[own]:.2f} | {100 * answers[0]['flops'] / took[own] / peak:.0f}% | "
                    f"{took[peer] / took[own]:.2f} ")
        print(row + '|', flush=True)
    for worker in workers:
        worker.close()


def memory(options):
    workers = [start_lathe(options), start_torch('eager', options), start_torch('compile', options)]
    print('\nMemory-bound ops\n')
    print('| op | rows x columns | floor ms | Lathe ms | of floor | PyTorch eager ms | torch.compile ms | '
          'best peer / Lathe |')
    print('|---|---|---|---|---|---|---|---|')
    for name, (rows, columns) in MEMORY.items():
        answers = [worker.ask(f'memory {rows} {columns} {name}') for worker in workers]
        took, _ = measure(workers, options)
        own, eager, compiled = (took[w.name] for w in workers)
        with undisturbed(workers[:1], options.lock, options.realtime):
            floor = workers[0].ask(f'memory {rows} {columns} {name}')['floor']
        floor = min(floor, answers[0]['floor'])
        print(f"| {name} | {rows} x {columns} | {1e3 * floor:.2f} | {1e3 * own:.2f} | {own / floor:.2f} | "
              f"{1e3 * eager:.2f} | {1e3 * compiled:.2f} | {min(eager, compiled) / own:.2f} |", flush=True)
    for worker in workers:
        worker.close()


def start_lathe(options):
    return Worker('Lathe', [str(options.build / 'bench/bench_ops'), str(options.threads)])


def start_torch(kind, options):
    return Worker({'eager': 'PyTorch', 'compile': 'torch.compile'}[kind],
                  [str(options.peers / 'bin/python'), str(here / 'peers/ops_worker.py'), kind, str(options.threads)],
                  peer_environment(options.peers, options.threads))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_options(parser)
    parser.add_argument('--batch', type=int, default=4)
    parser.add_argument('--heads', type=int, default=12)
    parser.add_argument('--lengths', type=lambda text: [int(n) for n in text.split(',')],
                        default=[128, 256, 512, 1024, 2048])
    parser.add_argument('--budget', type=float, default=0.6, help='seconds of runs of each program in one case')
    parser.add_argument('what', nargs='*', default=['attention', 'convolution', 'memory'])
    options = parser.parse_args()
    print(f'{machine()}, {options.threads} threads')
    for what in options.what:
        {'attention': attention, 'convolution': convolution, 'memory': memory}[what](options)


if __name__ == '__main__':
    main()

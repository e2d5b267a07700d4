#!/usr/bin/env python3
"""Whole steps, of training or of decoding, of Lathe and of its peers, in turns, from the same weights and batch.

Usage: bench/run_steps.py [--build FOLDER] [--before FOLDER] [--peers FOLDER] [CASE ...]
bench/peers/setup.sh makes the peers' folder; the build needs -DLATHE_BENCH=ON. Every program is a process that waits
while another one measures. A round measures what bounds the steps, the FMA peak or, for decode-CONTEXT, the read
bandwidth, then some steps of each program, with a rest before each; the table has medians over all rounds: of times, and
of each round's shares and ratios, since a machine may change its clock from round to round. The programs' losses are
compared step by step. "First step" is the time to the end of the first step: for Lathe its compilation, for peers also theirs.
"""
import argparse
import json
import pathlib
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here / 'peers'))
from workers import Worker, add_common_options, machine, median, peer_environment, undisturbed  # noqa: E402

CASES = ['gpt2', 'gpt2-1024', 'encoder-decoder', 'llama-block', 'decode-256', 'decode-1024']
PEERS = {'eager': 'PyTorch eager', 'compile': 'torch.compile', 'jax': 'JAX jit'}
STOCK = {'eager-stock': 'PyTorch eager, MKL as installed', 'compile-stock': 'torch.compile, MKL as installed'}


def lathe_worker(name, build, case, weights, options):
    return Worker(name, [str(build / 'bench/bench_training_step'), case, '--serve', '--export', str(weights), '--threads',
                         str(options.threads), '--clip', str(options.clip), '--precision', options.precision])


def start(case, options, folder):
    weights = folder / 'weights.safetensors'
    lathe = lathe_worker('Lathe', options.build, case, weights, options)
    workers = [lathe]
    if options.before:
        workers.append(lathe_worker('Lathe before', options.before, case, folder / 'before.safetensors', options))
    for kind in options.only:
        if kind == 'jax' and options.precision != 'f32':
            continue
        name = {**PEERS, **STOCK}[kind]
        command = [str(options.peers / 'bin/python'), str(here / 'peers/step_worker.py'), kind.removesuffix('-stock'),
                   case, str(weights), json.dumps(lathe.ready['sizes']), str(options.threads), str(options.clip), options.precision]
        workers.append(Worker(name, command, peer_environment(options.peers, options.threads, kind in STOCK)))
        print(f"  {workers[-1].name}: {workers[-1].ready}", file=sys.stderr)
    return workers


def measure(workers, options):
    """By worker, the seconds of its steps in each round, its losses and its most resident memory; the rounds' peaks."""
    seconds, losses, memory, peaks = ({w.name: [] for w in workers}, {w.name: [] for w in workers}, {}, [])
    with undisturbed(workers, options.lock, options.realtime):
        for worker in workers:  # caches, allocators and clocks settle
            losses[worker.name] += worker.ask('run 2')['losses']
            worker.ask('forget')
    for _ in range(options.rounds):
        with undisturbed(workers, options.lock, options.realtime):
            peaks.append(workers[0].ask('peak')['peak'])
            for worker in workers:
                time.sleep(options.rest)  # threads of the previous worker may still spin
                answer = worker.ask(f'run {options.steps * (20 if workers[0].ready["streams"] else 1)}')
                seconds[worker.name].append(answer['seconds'])
                losses[worker.name] += answer['losses']
                memory[worker.name] = answer['memory']
    for worker in workers[1:]:
        if 'loss' in worker.ready:
            losses[worker.name].insert(0, worker.ready['loss'])
    return seconds, losses, memory, peaks


def loss_difference(losses, name):
    """The largest relative difference from Lathe's loss over the first three steps, each after one more update."""
    return max(abs(a - b) / abs(a) for a, b in zip(losses['Lathe'][:3], losses[name][:3]))


def by_round(rounds, others):
    """The median of a round's steps over another figure of the same round, as a median over the rounds."""
    return median(median(steps) / other for steps, other in zip(rounds, others))


def report(case, workers, seconds, losses, memory, peaks):
    about, peak = workers[0].ready, median(peaks)
    own = [median(steps) for steps in seconds['Lathe']]
    ratios = {name: by_round(rounds, own) for name, rounds in seconds.items()}
    best = min((ratio for name, ratio in ratios.items() if not name.startswith('Lathe')), default=float('inf'))
    limit, unit = ('read bandwidth', 'GB') if about['streams'] else ('peak', 'GFLOP')
    print(f"\n{case}: {about['what']}; {limit} {peak * 1e-9:.0f} {unit}/s, {about['work'] * 1e-9:.3g} {unit} a step\n")
    print(f'| program | ms | tokens/s | of {limit} | time / Lathe | peak memory | first step | loss differs |')
    print('|---|---|---|---|---|---|---|---|')
    for worker in workers:
        rounds = seconds[worker.name]
        took = median(second for steps in rounds for second in steps)
        share = 1 / by_round(rounds, [about['work'] / one for one in peaks])
        first = worker.ready['compile' if 'compile' in worker.ready else 'first']
        off = '' if worker is workers[0] else f'{loss_difference(losses, worker.name):.1e}'
        print(f"| {worker.name} | {1e3 * took:.1f} | {about['tokens'] / took:.0f} | "
              f"{100 * share:.1f}% | {ratios[worker.name]:.2f} | {memory[worker.name] / 2**30:.2f} GiB | "
              f"{first:.1f} s | {off} |")
    plan = about['arena'] + about['arguments']
    beside = f"Lathe is {best:.2f} times as fast as the best peer. " if best < float('inf') else ""
    print(f"\n{beside}Its plan: arena {about['arena'] / 2**20:.0f} MiB "
          f"({about['arena'] / max(1, about['lower_bound']):.3f} of the largest live set), arguments and states "
          f"{about['arguments'] / 2**20:.0f} MiB, together {plan / 2**30:.2f} GiB; {about['kernels']} kernels in "
          f"{about['launches']} launches.", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_options(parser)
    parser.add_argument('--before', type=pathlib.Path, help='another build of Lathe, to stand beside')
    parser.add_argument('--steps', type=int, default=2, help='of each program in a round; of decoding 20 times as many')
    parser.add_argument('--rest', type=float, default=0.2, help='seconds before each turn')
    parser.add_argument('--clip', type=float, default=0, help='clip the gradients to this norm; 0: do not')
    parser.add_argument('--precision', choices=['f32', 'bf16'], default='f32',
                        help='bf16: mixed precision; of the peers PyTorch, by torch.autocast')
    parser.add_argument('--only', type=lambda text: [k for k in text.split(',') if k], default=list(PEERS),
                        help='peers to start: ' + ','.join([*PEERS, *STOCK]) + '; -stock: see workers.py')
    parser.add_argument('cases', nargs='*', default=CASES)
    options = parser.parse_args()
    print(f'{machine()}, {options.threads} threads, {options.precision}')
    wrong, allowed = False, 1e-3 if options.precision == 'f32' else 1.6e-2
    for case in options.cases:
        with tempfile.TemporaryDirectory() as folder:
            workers = start(case, options, pathlib.Path(folder))
            seconds, losses, memory, peaks = measure(workers, options)
        report(case, workers, seconds, losses, memory, peaks)
        for worker in workers:
            if worker.name != 'Lathe' and loss_difference(losses, worker.name) > allowed:
                print(f'{case}: {worker.name} computes other losses: {losses[worker.name][:3]}, not '
                      f'{losses["Lathe"][:3]}', file=sys.stderr)
                wrong = True
            worker.close()
    sys.exit(wrong)


if __name__ == '__main__':
    main()

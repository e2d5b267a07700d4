#!/usr/bin/env python3
"""GPT-2 124M's training step on several processes of one machine, in turns with one process and with PyTorch's DDP over gloo.

Usage: bench/run_ranks.py [--build FOLDER] [--peers FOLDER] [--ranks N] [--states AXIS] [CASE]
bench/peers/setup.sh makes the peers' folder; the build needs -DLATHE_BENCH=ON and an MPI. All start from the same weights and the same
batch: one process of Lathe with as many threads as there are ranks; N processes of Lathe, with a thread each, which divide the batch
(mesh data=N) and, with --states, the optimizer's states; N ranks of DDP with a thread each. Only one of them measures at a time, and
their losses are compared. The figures after the table: of the bytes that the exchanges of gradients send, those of exchanges that began
before the last gradient was computed; the bytes that a rank sends a step, counted and predicted; and how long dividing the step took.
Processes that share a machine's cores and memory show what exchanging costs, never what more machines gain.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here / 'peers'))
from run_steps import loss_difference  # noqa: E402
from workers import Worker, add_common_options, machine, median, peer_environment, undisturbed  # noqa: E402

MPIRUN = 'mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 0'
AS_ROOT = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}


def start(options, folder):
    """One process, many, the peer."""
    program, weights = options.build / 'bench/bench_training_step', folder / 'weights.safetensors'
    one = Worker('Lathe', [str(program), options.case, '--serve', '--threads', str(options.ranks), '--export', str(weights)])
    words = [*options.mpirun.split(), '-n', str(options.ranks), str(program), options.case, '--serve', '--threads', '1',
             '--mpi', str(options.build / 'tools/liblathe_mpi.so'), '--mesh', f'data={options.ranks}'] + (['--states', options.states] if options.states else [])
    workers = [one, Worker('Lathe, processes', words, AS_ROOT)]
    if not options.no_peer:
        command = [str(options.peers / 'bin/python'), str(here / 'peers/ddp_worker.py'), options.case, str(weights),
                   json.dumps(one.ready['sizes']), str(options.ranks), '1']
        workers.append(Worker('DDP', command, peer_environment(options.peers, 1)))
    return workers


def measure(workers, options):
    """By worker: the seconds of its steps in each round, and its losses; of the processes, their last answer."""
    seconds, losses, last = {w.name: [] for w in workers}, {}, {}
    for worker in workers:
        first = [worker.ready['loss']] if 'loss' in worker.ready else []
        losses[worker.name] = first + worker.ask('run 3')['losses']
    for _ in range(options.rounds):
        with undisturbed(workers, options.lock, options.realtime):
            for worker in workers:
                time.sleep(options.rest)  # threads of the previous worker may still spin
                last[worker.name] = worker.ask(f'run {options.steps}')
                seconds[worker.name].append(last[worker.name]['seconds'])
    return seconds, losses, last


def report(workers, seconds, losses, last, options):
    typical = {name: [median(steps) for steps in rounds] for name, rounds in seconds.items()}
    best = {name: min(min(steps) for steps in rounds) for name, rounds in seconds.items()}
    one, many = workers[:2]
    said = {'Lathe': f'Lathe, 1 process x {options.ranks} threads',
            'Lathe, processes': f'Lathe, {options.ranks} processes x 1 thread, {options.states or "no"} states in parts',
            'DDP': f'{workers[-1].ready.get("version")}, {options.ranks} ranks x 1 thread'}
    print(f"\n{one.ready['what']}\n\n| program | ms | best | loss differs |\n|---|---|---|---|")
    for worker in workers:
        off = '' if worker is one else f'{loss_difference(losses, worker.name):.1e}'
        print(f'| {said[worker.name]} | {1e3 * median(typical[worker.name]):.0f} | {1e3 * best[worker.name]:.0f} | {off} |')
    def over(a, b):
        return median(x / y for x, y in zip(typical[a], typical[b])), best[a] / best[b]
    print('\nRatios, medians over the rounds, and of the best steps:')
    print('  processes / one process: {:.2f}, {:.2f}'.format(*over(many.name, one.name)))
    if len(workers) > 2:
        print('  DDP / processes: {:.2f}, {:.2f}'.format(*over('DDP', many.name)))
    steps, end = 3 + options.rounds * options.steps, last[many.name]
    print(f"Bytes that a rank sends a step: {end['sent'] / steps:.0f} counted, {many.ready['predicted']} predicted, and "
          f"{end['scalars'] / steps:.0f} of single elements")
    print(f"On their way before the last gradient was there: {100 * end['early'] / end['summed']:.1f}% of {end['summed'] / steps:.0f}")
    print(f"Dividing the step: {1e3 * many.ready['shard']:.1f} ms at best, {many.ready['nodes']} nodes for {options.ranks} ranks", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_options(parser)
    parser.add_argument('--ranks', type=int, default=2)
    parser.add_argument('--states', default='data', help="the axis of the optimizer's states; '': whole ones")
    parser.add_argument('--steps', type=int, default=2, help='of each program in a round')
    parser.add_argument('--rest', type=float, default=0.3, help='seconds before each turn')
    parser.add_argument('--no-peer', action='store_true')
    parser.add_argument('--mpirun', default=MPIRUN, help='the words before -n')
    parser.add_argument('case', nargs='?', default='gpt2')
    options = parser.parse_args()
    print(f'{machine()}, {os.cpu_count()} CPUs')
    with tempfile.TemporaryDirectory() as folder:
        workers = start(options, pathlib.Path(folder))
        seconds, losses, last = measure(workers, options)
    report(workers, seconds, losses, last, options)
    wrong = [w.name for w in workers[1:] if loss_difference(losses, w.name) > 1e-3]
    for worker in workers:
        worker.close()
    for name in wrong:
        print(f'{name} computes other losses: {losses[name][:3]}, not {losses["Lathe"][:3]}', file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
"""Losses and gradients of the models of examples/papers, in Lathe and in PyTorch, in turns.

Usage: bench/run_papers.py [--build FOLDER] [--peers FOLDER] [NAME...]
Prints the lines of the model's file (without comments and blank lines), the median milliseconds of the loss with all
gradients, and how much longer PyTorch eager and torch.compile take.
"""
import argparse
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here / 'peers'))
from workers import Worker, add_common_options, machine, measure_in_turns, peer_environment  # noqa: E402

# batch, length (or side of an image), width, heads, layers, vocabulary
PAPERS = {'clip': (16, 32, 256, 4, 4, 1000), 'diffusion_transformer': (4, 32, 256, 4, 4, 10),
          'direct_preference': (4, 128, 256, 4, 4, 1000), 'gan': (16, 32, 256, 1, 1, 1),
          'latent_attention': (4, 256, 256, 4, 4, 1), 'mamba2': (4, 256, 256, 8, 4, 1),
          'mixture_of_experts': (4, 256, 256, 4, 4, 1000), 'muon': (16, 32, 512, 1, 4, 1),
          'physics_informed': (64, 64, 64, 1, 4, 1), 'resnet': (4, 224, 64, 1, 6, 1000), 'u_net': (4, 32, 32, 1, 1, 1),
          'vae': (16, 32, 256, 1, 1, 1), 'whisper_stem': (1, 3000, 512, 1, 1, 1)}


def lines_of(name):
    text = (here.parent / f'examples/papers/{name}.cpp').read_text().splitlines()
    return sum(bool(line.strip()) and not line.strip().startswith('//') for line in text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_options(parser)
    parser.add_argument('--budget', type=float, default=3, help='seconds of runs of each program in one case')
    parser.add_argument('names', nargs='*', default=list(PAPERS))
    options = parser.parse_args()
    environment = peer_environment(options.peers, options.threads)
    peer = [str(options.peers / 'bin/python'), str(here / 'peers/papers_worker.py')]
    lathe, eager, compiled = workers = [
        Worker('Lathe', [str(options.build / 'bench/bench_papers'), str(options.threads)]),
        Worker('PyTorch', [*peer, 'eager', str(options.threads)], environment),
        Worker('torch.compile', [*peer, 'compile', str(options.threads)], environment)]
    print(f'{machine()}, {options.threads} threads, PyTorch {eager.ready["version"]}\n')
    print('| model | lines | Lathe ms | PyTorch ms | torch.compile ms | PyTorch / Lathe | torch.compile / Lathe |')
    print('|---|---|---|---|---|---|---|')
    for name in options.names:
        errors = {w.name: w.ask(f'open {name} ' + ' '.join(map(str, PAPERS[name]))).get('error') for w in workers}
        for worker in workers:
            if errors[worker.name]:
                print(f'{worker.name}: {name}: {errors[worker.name]}', file=sys.stderr)
        took = measure_in_turns([w for w in workers if not errors[w.name]], options)
        own = took[lathe.name]

        def text(worker, factor):
            return f'{factor * took[worker.name]:.2f}' if worker.name in took else 'fails'
        print(f'| {name} | {lines_of(name)} | {1e3 * own:.2f} | {text(eager, 1e3)} | {text(compiled, 1e3)} | '
              f'{text(eager, 1 / own)} | {text(compiled, 1 / own)} |', flush=True)
    for worker in workers:
        worker.close()


if __name__ == '__main__':
    main()

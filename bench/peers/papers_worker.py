"""The models of papers in PyTorch as a process that waits for commands: bench/run_papers.py starts it; the commands
are those of bench/workers/papers.cpp. papers_worker.py eager|compile THREADS"""
import pathlib
import sys

import torch

from serve import serve, wrapper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'tests/papers'))
from torch_papers import PAPERS, Store  # noqa: E402

KEYS = ('batch', 'length', 'width', 'heads', 'layers', 'vocabulary')


def opened(name, sizes, wrap):
    torch._dynamo.reset()  # otherwise the limit of recompilations makes later models run eagerly
    paper = next(paper for paper in PAPERS if paper.__name__ == name)
    store = Store(torch.float32)
    loss = paper(store, sizes)  # creates the parameters
    loss.backward()
    trained = [p for p in store.parameters.values() if p.grad is not None]
    function = wrap(lambda: paper(store, sizes))
    run = lambda: torch.autograd.grad(function(), trained)  # noqa: E731
    run()
    return run


def main():
    wrap = wrapper(sys.argv[1])

    def open_case(words):
        try:
            return opened(words[1], dict(zip(KEYS, map(int, words[2:]))), wrap), {}
        except Exception as error:  # torch.compile does not support all models
            return None, {'error': f'{type(error).__name__}: {error}'.split('\n')[0]}
    serve(int(sys.argv[2]), open_case)


if __name__ == '__main__':
    main()

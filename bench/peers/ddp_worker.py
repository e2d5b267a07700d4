"""PyTorch's DistributedDataParallel over gloo as processes of this machine: bench/run_ranks.py starts it.

ddp_worker.py CASE WEIGHTS SIZES RANKS THREADS
It answers the commands of step_worker.py. Each rank has its rows of the batch and that many threads; gradients are
views of DDP's buckets, so that none is copied.
"""
import json
import os
import sys
import tempfile
import time

import models
import step_worker


def start(rank, ranks, meeting, case, weights, sizes, threads):
    """The step of a rank, which gives the mean of all ranks' losses, and PyTorch's version."""
    import torch
    import torch.distributed as dist
    import torch_ops
    torch.set_num_threads(threads)
    dist.init_process_group('gloo', init_method=f'file://{meeting}', rank=rank, world_size=ranks)
    parameters, batch = step_worker.parameters_and_batch(weights)
    batch = {name: torch.from_numpy(value).chunk(ranks)[rank] for name, value in batch.items()}

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.names = list(parameters)
            self.values = torch.nn.ParameterList(torch.from_numpy(value) for value in parameters.values())

        def forward(self, batch):
            return models.model_of(case)(torch_ops, dict(zip(self.names, self.values)), batch, sizes)

    model = torch.nn.parallel.DistributedDataParallel(Model(), gradient_as_bucket_view=True, static_graph=True)
    optimizer = step_worker.adamw(model.parameters())

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(batch)
        loss.backward()
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        return mean.item() / ranks
    return step, f'PyTorch {torch.__version__}, DDP, gloo'


def commands(rank):
    """Those that the first rank reads, on all of them; the others wait asleep."""
    import torch.distributed as dist
    while True:
        line = [sys.stdin.readline() if rank == 0 else None]
        dist.broadcast_object_list(line, src=0)
        if not line[0]:
            return
        yield line[0]


def main():
    case, weights, sizes, ranks, threads = sys.argv[1:6]
    sizes, ranks, threads = json.loads(sizes), int(ranks), int(threads)
    answers = step_worker.own_answers()
    with tempfile.TemporaryDirectory() as folder:
        rank = next((r for r in range(1, ranks) if os.fork() == 0), 0)
        started = time.perf_counter()
        step, version = start(rank, ranks, os.path.join(folder, 'meeting'), case, weights, sizes, threads)
        loss = step()
        ready = {'version': version, 'loss': loss, 'first': time.perf_counter() - started}
        if rank == 0:
            print(json.dumps(ready), file=answers, flush=True)
        for line in commands(rank):
            found = step_worker.answer(line, step)
            if rank == 0:
                print(json.dumps(found), file=answers, flush=True)
        if rank > 0:
            os._exit(0)  # rank 0 removes the folder
        for _ in range(1, ranks):
            os.wait()


if __name__ == '__main__':
    main()

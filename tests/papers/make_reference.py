"""Writes reference.json: losses of the papers' models in f64, and two numbers of each gradient.

pip install torch numpy
"""
import json
import pathlib

import torch
from torch_papers import PAPERS, Store, mamba2, scan_by_steps

SIZES = {'batch': 2, 'length': 8, 'width': 16, 'heads': 2, 'layers': 2, 'vocabulary': 16}


LENGTHS = {'resnet': 64}  # papers::Paper::least_length


def reference(paper):
    store = Store(torch.float64)
    sizes = SIZES | {'length': LENGTHS.get(paper.__name__, SIZES['length'])}
    # The definition of the scan, not the chunks that the model computes.
    loss = mamba2(store, SIZES, scan_by_steps) if paper is mamba2 else paper(store, sizes)
    loss.backward()
    found = {}
    for name, p in store.parameters.items():
        if p.grad is None:
            continue
        weights = torch.tensor(Store.draw('check.' + name, p.numel()) - 0.5)
        found[name] = [(p.grad.reshape(-1) * weights).sum().item(), p.grad.square().sum().item()]
    return {'loss': loss.item(), 'gradients': dict(sorted(found.items()))}


text = json.dumps({paper.__name__: reference(paper) for paper in PAPERS}, indent=1)
(pathlib.Path(__file__).parent / 'reference.json').write_text(text + '\n')

#!/usr/bin/env python3
"""Exports a small Transformer by torch.export, for `lathe` to train without Python.

  pip install torch==2.15.0
  python3 examples/import/export.py model.pt2
  lathe explain model.pt2
  lathe verify model.pt2 --random --dim input_ids_0=2,input_ids_1=16
"""

import argparse

import torch
from torch import nn


class Classifier(nn.Module):
    """Reads tokens, and returns logits of classes from the mean of their states."""

    def __init__(self, vocab=100, width=32, classes=4):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, activation="gelu", batch_first=True)
        self.words = nn.Embedding(vocab, width)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, classes)

    def forward(self, input_ids):
        return {"logits": self.head(self.encoder(self.words(input_ids)).mean(1))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", help="file to write: model.pt2")
    parser.add_argument("--decompose", action="store_true", help="call run_decompositions() before saving")
    options = parser.parse_args()
    # Sizes that vary are dynamic: the batch and the length.
    dynamic = {"input_ids": {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}}
    example = {"input_ids": torch.randint(0, 100, (2, 16))}
    program = torch.export.export(Classifier().eval(), (), example, dynamic_shapes=dynamic)
    if options.decompose:
        program = program.run_decompositions()
    torch.export.save(program, options.path)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Holds an adapter that `starpo weights --adapter` wrote, over its base in PEFT, against the merged weights.

    python3 adapter.py BASE ADAPTER MERGED

Needs: torch, transformers, peft (PyPI).
"""
import sys

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM


def logits(model):
    with torch.no_grad():
        return model.eval()(torch.arange(3, 103)[None]).logits


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


base, adapter, merged = sys.argv[1:]
start, wanted = logits(load(base)), logits(load(merged))
ours = logits(PeftModel.from_pretrained(load(base), adapter))
difference, moved = (ours - wanted).abs().max().item(), (wanted - start).abs().max().item()
print(f"adapter over base against merged: max |difference| {difference:.1e}; the adapter moves logits by {moved:.1e}")
sys.exit(difference > 1e-4 or moved == 0.0)

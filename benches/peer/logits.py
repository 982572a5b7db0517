#!/usr/bin/env python3
"""Logits of a model folder as transformers computes them, for `cargo bench --bench logits -- FOLDER OUT`.

    python3 logits.py FOLDER OUT.safetensors [--ids N]

OUT has, for each prompt i, `ids.i` (int64) and `logits.i` (float32): at the last position of three prompts of more than
100 tokens, or with --ids at every position of N tokens drawn at random. Weights are computed with in float32.
Needs: torch, transformers (PyPI).
"""
import argparse

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

PROMPTS = [
    "The warehouse keeper pushes each box onto its goal, one step at a time, and never pulls. " * 6,
    "fn main() {\n    let squares: Vec<u64> = (0..10).map(|n| n * n).collect();\n    println!(\"{squares:?}\");\n}\n" * 4,
    "Ein Beutel hält 17 Äpfel; drei davon sind faul. 世界 42. How many good apples are left over? " * 5,
]


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("folder")
    args.add_argument("out")
    args.add_argument("--ids", type=int)
    args = args.parse_args()
    model = AutoModelForCausalLM.from_pretrained(args.folder, dtype=torch.float32).eval()
    if args.ids:
        drawn = torch.randint(model.config.vocab_size, (args.ids,), generator=torch.Generator().manual_seed(7))
        prompts = [drawn]
    else:
        tokenizer = AutoTokenizer.from_pretrained(args.folder)
        prompts = [torch.tensor(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in PROMPTS]
        assert all(len(ids) >= 100 for ids in prompts)
    out = {}
    with torch.no_grad():
        for i, ids in enumerate(prompts):
            logits = model(ids[None]).logits[0]
            out[f"ids.{i}"] = ids
            out[f"logits.{i}"] = (logits if args.ids else logits[-1:]).contiguous()
    save_file(out, args.out)
    print(f"{args.out}: {[len(ids) for ids in prompts]} tokens")


if __name__ == "__main__":
    main()

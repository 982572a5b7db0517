"""The peer of benches/engine.rs: one kind of work on a Hugging Face folder with PyTorch, f32, two threads.

    engine.py FOLDER KIND ROWS LENGTH STEPS

Each line on standard input asks for one measurement; its seconds are printed.
"""

import sys
import time

import torch
from transformers import AutoModelForCausalLM, DynamicCache

folder, kind = sys.argv[1:3]
rows, length, steps = map(int, sys.argv[3:6])
torch.set_num_threads(2)
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
vocab = model.config.vocab_size
tokens = torch.tensor([[(7 * i + 13 * row) % vocab for i in range(length)] for row in range(rows)])


class Decode:
    """One token for each row, `steps` times, after a prompt that is in the cache but for its last token."""

    def __init__(self):
        model.eval()
        self.cache = DynamicCache(config=model.config)
        with torch.inference_mode():
            model(tokens[:, :-1], cache=self.cache, logits_to_keep=1)

    def __call__(self):
        ids, entropies, logprobs = tokens[:, -1:], [], []
        with torch.inference_mode():
            for _ in range(steps):
                logits = model(ids, cache=self.cache).logits[:, -1]
                logp = torch.log_softmax(logits, -1)
                p = logp.exp()
                ids = torch.multinomial(p, 1)
                logprobs.append(logp.gather(1, ids))
                entropies.append(-(p * logp).sum(-1))

    def rewind(self):
        self.cache.crop(-steps)


class Prefill:
    def __call__(self):
        model.eval()
        with torch.inference_mode():
            model(tokens, use_cache=True, logits_to_keep=1)

    def rewind(self):
        pass


class Train:
    """A policy gradient over all tokens, the clip of the global norm, and AdamW."""

    def __init__(self):
        model.train()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, betas=(0.9, 0.95), weight_decay=0.01)

    def __call__(self):
        logits = model(tokens, use_cache=False).logits[:, :-1]
        logp = torch.log_softmax(logits, -1).gather(2, tokens[:, 1:, None])
        (-logp.mean()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def rewind(self):
        pass


work = {"decode": Decode, "prefill": Prefill, "train": Train}[kind]()
print("ready", flush=True)
for _ in sys.stdin:
    start = time.perf_counter()
    work()
    print(time.perf_counter() - start, flush=True)
    work.rewind()

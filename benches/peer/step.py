"""A whole GRPO step on Sokoban with a pretrained model, ours and PyTorch's in turns, f32, two threads.

    step.py STARPO FOLDER [STEPS]

`starpo` plays and learns from 4 groups x 8 episodes of 3 turns, one step more each time; the peer then does the work
that the step's records name: `generate` on the whole prompts of each turn, as many tokens as ours sampled, the old
log-probs over padded rows, and one padded update in micro-batches. Needs torch, transformers and zstandard.
"""

import io
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import zstandard
from transformers import AutoModelForCausalLM

binary, folder = map(str, map(pathlib.Path.resolve, map(pathlib.Path, sys.argv[1:3])))
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 5
EXPERIMENT = """
experiment "bench" {
    extends "base"
    use "model/instruct"
    model "pretrained" { path (dir)"%s" }
    task "sokoban"
    rollout { groups 4; group-size 8; max-turns 3; max-response-tokens 48 }
    update { mini-batch 32 }
    eval { tasks 0 }
    collapse { every 1000 }
    execution { threads 2; activation-mib 8192 }
}
"""
MICRO_BATCH = 4  # rows of a forward and backward pass: the most that as much memory holds

torch.set_num_threads(2)
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)


def ours(home, step):
    """Seconds of our step, and the episodes that it played."""
    run = [binary, "--runs-dir", home / "runs", "--config-dir", home, "--json", "run", "bench", f"train.steps={step}"]
    done = json.loads(subprocess.run(run, check=True, stdout=subprocess.PIPE).stdout)
    directory = pathlib.Path(done["directory"])
    timing = [json.loads(line) for line in (directory / "timings.jsonl").read_text().splitlines()][-1]
    assert timing["step"] == step
    packed = next((directory / "rollouts").glob(f"*{step:06}*")).read_bytes()
    text = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)).read().decode()
    return timing, [json.loads(line) for line in text.splitlines()]


def padded(rows, left):
    width = max(map(len, rows))
    fill = [[0] * (width - len(row)) for row in rows]
    ids = torch.tensor([f + row if left else row + f for f, row in zip(fill, rows)])
    mask = torch.tensor([[0] * len(f) + [1] * len(r) if left else [1] * len(r) + [0] * len(f) for f, r in zip(fill, rows)])
    return ids, mask


def logprobs(ids, mask):
    logits = model(ids, attention_mask=mask, use_cache=False).logits[:, :-1]
    return torch.log_softmax(logits, -1).gather(2, ids[:, 1:, None])[..., 0]


def theirs(episodes):
    """Seconds that the peer takes for the same episodes: rollout, old log-probs, update."""
    texts = [[] for _ in episodes]
    start, seconds = time.perf_counter(), []
    model.eval()
    for turn in range(max(len(episode["turns"]) for episode in episodes)):
        alive = [i for i, episode in enumerate(episodes) if turn < len(episode["turns"])]
        for i in alive:
            texts[i] += episodes[i]["turns"][turn]["prompt"]
        longest = max(len(episodes[i]["turns"][turn]["response"]) for i in alive)
        ids, mask = padded([texts[i] for i in alive], left=True)
        with torch.inference_mode():
            limits = dict(min_new_tokens=longest, max_new_tokens=longest)
            model.generate(ids, attention_mask=mask, do_sample=True, top_k=0, pad_token_id=0, **limits)
        for i in alive:
            texts[i] += episodes[i]["turns"][turn]["response"]
    seconds.append(time.perf_counter() - start)
    ids, mask = padded(texts, left=False)
    parts = range(0, len(ids), MICRO_BATCH)
    with torch.inference_mode():
        old = [logprobs(ids[i : i + MICRO_BATCH], mask[i : i + MICRO_BATCH]) for i in parts]
    seconds.append(time.perf_counter() - start)
    model.train()
    for i, before in zip(parts, old):
        rows = mask[i : i + MICRO_BATCH]
        ratio = (logprobs(ids[i : i + MICRO_BATCH], rows) - before.clone()).exp()
        (-(ratio * rows[:, 1:]).sum() / mask.sum()).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    seconds.append(time.perf_counter() - start)
    return seconds


with tempfile.TemporaryDirectory() as home:
    home = pathlib.Path(home)
    (home / "experiments").mkdir()
    (home / "experiments" / "bench.kdl").write_text(EXPERIMENT % folder)
    mine, peers = [], []
    for step in range(1, steps + 1):
        timing, episodes = ours(home, step)
        mine.append(timing["seconds"])
        peers.append(theirs(episodes))
        tokens = sum(len(turn["response"]) for episode in episodes for turn in episode["turns"])
        rollout, scored, whole = peers[-1]
        print(
            f"step {step}: {tokens} tokens sampled; ours {timing['seconds']:.1f} s ({json.dumps(timing['phases'])}), "
            f"PyTorch {whole:.1f} s (generate {rollout:.1f}, old log-probs {scored - rollout:.1f}, "
            f"update {whole - scored:.1f})",
            flush=True,
        )
    a, b = statistics.median(mine), statistics.median(peer[-1] for peer in peers)
    print(f"| a GRPO step on Sokoban, SmolLM2, 4 groups × 8, 3 turns | {a:.1f} s | {b:.1f} s | {b / a:.2f}× (goal 5×) |")

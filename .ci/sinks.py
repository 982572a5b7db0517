"""Holds what starpo writes for other tools against its records, read by those tools."""

import csv
import json
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

STARPO = Path(sys.argv[1]).resolve()
QUICK = (
    "warm-start=none width=16 layers=1 ffn=16 groups=2 group-size=2 max-turns=1 max-response-tokens=4 eval.tasks=2 "
    "checkpoint-every=3 threads=1 train.steps=12 logging.tensorboard=true logging.parquet=true"
).split()


def starpo(*words, ok=True):
    done = subprocess.run([STARPO, *words], cwd=work, capture_output=True, text=True)
    assert not ok or done.returncode == 0, done.stderr
    return done


def leaves(record, path=""):
    for name, value in record.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{path}{name}.")
        else:
            yield path + name, value


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def killed_and_resumed():
    """A run that was ended (-9) between checkpoints and went on."""
    process = subprocess.Popen([STARPO, "run", "bandit", *QUICK], cwd=work, stderr=subprocess.DEVNULL)
    lines = lambda: sum(len(path.read_text().splitlines()) for path in work.glob("runs/*/metrics.jsonl"))
    while lines() < 6 and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    assert process.wait() != 0, "it was killed too late"
    run = next(work.glob("runs/bandit-*"))
    assert (run / "tensorboard").is_dir()
    starpo("run", "bandit", *QUICK)
    return run


def events(run, records):
    numbers = {}
    for record in records:
        for path, value in leaves(record):
            if path != "step" and isinstance(value, (int, float)):
                numbers.setdefault(path, []).append((record["step"], float32(value)))
    read = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0})
    read.Reload()
    assert sorted(read.Tags()["scalars"]) == sorted(numbers), read.Tags()
    for path, expected in numbers.items():
        assert [(scalar.step, scalar.value) for scalar in read.Scalars(path)] == expected, path
    (file,) = (run / "tensorboard").iterdir()
    steps = [event.step for event in EventFileLoader(str(file)).Load() if event.HasField("summary")]
    assert steps == [record["step"] for record in records], steps
    print(f"TensorBoard: {len(numbers)} tags, {len(steps)} steps once each")


def tables(run, records):
    metrics = pq.read_table(run / "metrics.parquet").to_pylist()
    for row, record in zip(metrics, records, strict=True):
        flat = {path: json.dumps(value, separators=(",", ":")) if isinstance(value, list) else value for path, value in leaves(record)}
        assert {path: value for path, value in row.items() if value is not None} == {
            path: value for path, value in flat.items() if value is not None
        }
    turns = []
    for path in sorted((run / "rollouts").iterdir()):
        lines = pa.CompressedInputStream(pa.OSFile(str(path)), "zstd").read().decode().splitlines()
        turns += [(episode, turn) for episode in map(json.loads, lines) for turn in episode["turns"]]
    rows = pq.read_table(run / "episodes.parquet").to_pylist()
    for row, (episode, turn) in zip(rows, turns, strict=True):
        for name in ["step", "group", "member"]:
            assert row[name] == episode[name]
        for name in ["turn", "observation", "text", "reward", "penalty", "valid"]:
            assert row[name] == turn[name]
    starpo("metrics", run.name, "--csv", "metrics.csv")
    with open(work / "metrics.csv", newline="") as file:
        written = list(csv.DictReader(file))
    assert [float(row["rollout.success"] or "nan") for row in written[1:]] == [
        record["rollout"]["success"] for record in records[1:]
    ]
    starpo("metrics", run.name, "--turns", "--parquet", "turns.parquet", "--csv", "turns.csv")
    assert pq.read_table(work / "turns.parquet").to_pylist() == rows
    with open(work / "turns.csv", newline="") as file:
        assert [row["observation"] for row in csv.DictReader(file)] == [row["observation"] for row in rows]
    print(f"pyarrow: {len(metrics)} steps, {len(rows)} turns")


def inputs():
    """The columns of Countdown-Tasks-3to4 and of GSM8K, in both compressions."""
    puzzles = [{"target": a + b - c, "nums": [a, b, c]} for a in range(1, 30) for b in range(20, 30) for c in (3, 7)]
    questions = [{"question": f"What is {n} + 1?", "answer": f"It is one more.\n#### {n + 1}"} for n in range(200)]
    for name, rows, task in [
        ("puzzles", puzzles, ["countdown", "task.0.file=(file){}"]),
        ("questions", questions, ["math", "questions=file", "questions.path=(file){}"]),
    ]:
        (work / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        pq.write_table(pa.Table.from_pylist(rows), work / f"{name}-snappy.parquet", compression="snappy")
        pq.write_table(pa.Table.from_pylist(rows), work / f"{name}-zstd.parquet", compression="zstd")
        files = [f"{name}.jsonl", f"{name}-snappy.parquet", f"{name}-zstd.parquet"]
        shown = [
            starpo("env", "render", *[word.format(file) for word in task], "--task", "5").stdout for file in files
        ]
        assert shown[0] == shown[1] == shown[2] and len(shown[0]) > 100, shown
    (work / "broken.parquet").write_bytes(b"PAR1")
    broken = starpo("env", "render", "countdown", "task.0.file=(file)broken.parquet", ok=False)
    assert broken.returncode == 2 and "cannot read broken.parquet" in broken.stderr, broken.stderr
    print("inputs: Parquet as JSON lines")


with tempfile.TemporaryDirectory() as folder:
    work = Path(folder)
    run = killed_and_resumed()
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    events(run, records)
    tables(run, records)
    inputs()

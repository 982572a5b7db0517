"""The peers of benches/environments.rs: steps of gym-sokoban and gymnasium with the state shown after each, or new
tasks, a second on one thread.

    environments.py sokoban-steps|sokoban-tasks|frozen-lake-steps

The state is shown in the cheapest way that each knows: gym-sokoban's picture of one pixel a cell, without which it takes
no step (RAGEN makes its text beside), and gymnasium's text (`ansi`). New tasks are not counted among the steps.
Needs gym-sokoban, gymnasium and setuptools<81, whose pkg_resources the first imports (PyPI)."""

import random
import sys
import time
import warnings

warnings.filterwarnings("ignore")
STEPS, LONGEST, TASKS = 20_000, 100, 200


def steps(env, step):
    """Steps a second of random play; `step` takes an action, shows the state, and says whether that was the end."""
    taken, spent = 0, 0.0
    while taken < STEPS:
        env.reset()
        actions = [random.randrange(4) for _ in range(LONGEST)]
        start = time.perf_counter()
        for action in actions:
            taken += 1
            if step(action):
                break
        spent += time.perf_counter() - start
    return taken / spent


def sokoban():
    from gym_sokoban.envs.sokoban_env import SokobanEnv

    return SokobanEnv(dim_room=(6, 6), num_boxes=1, max_steps=LONGEST, reset=False)


def sokoban_steps():
    env = sokoban()
    # Actions 1 to 4 push.
    return steps(env, lambda action: env.step(1 + action, observation_mode="tiny_rgb_array")[2])


def sokoban_tasks():
    env = sokoban()
    start = time.perf_counter()
    for _ in range(TASKS):
        env.reset(render_mode="tiny_rgb_array")
    return TASKS / (time.perf_counter() - start)


def frozen_lake_steps():
    import gymnasium
    from gymnasium.envs.toy_text.frozen_lake import generate_random_map

    desc = generate_random_map(size=4, p=0.9, seed=1)
    env = gymnasium.make("FrozenLake-v1", desc=desc, render_mode="ansi", is_slippery=False)

    def step(action):
        ended = env.step(action)[2]
        env.render()
        return ended

    return steps(env, step)


random.seed(1)
measures = {"sokoban-steps": sokoban_steps, "sokoban-tasks": sokoban_tasks, "frozen-lake-steps": frozen_lake_steps}
print(measures[sys.argv[1]]())

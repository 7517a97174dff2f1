"""Windows of up to some forty slots against an adversary who steers with binary response.

In every slot it chooses, with the past before its eyes, whether what would be there without the target looks like the
target's first value or like its second. What matters of the past is only how often which was chosen and how often
which symbol came: an exact game of four numbers.
"""

from __future__ import annotations

import numpy as np

from oracles.absent.crowd import Array
from oracles.absent.designs import Random, local_epsilon
from oracles.absent.setting import Setting, epsilons


def value(local_epsilon: float, slots: int, weight: float, alpha: float) -> float:
    """The best delta at alpha, if the target's report stands in each slot with this probability."""
    e = np.exp(local_epsilon)
    first, second, shown = np.meshgrid(*[np.arange(slots + 1)] * 3, indexing="ij")
    # first: slots that looked like a; second: of these, those that showed b's symbol; shown: of the others, a's symbol
    total = (first - second) * (1 - alpha / e) + second * (1 - alpha * e)
    total = total + shown * (e - alpha) + (slots - first - shown) * (1 / e - alpha)
    now = np.maximum((1.0 - slots * weight) * (1.0 - alpha) + weight * total, 0.0)
    rare = 1.0 / (e + 1.0)
    for _ in range(slots):
        like_a = rare * now[1:, 1:, :-1] + (1.0 - rare) * now[1:, :-1, :-1]
        like_b = rare * now[:-1, :-1, 1:] + (1.0 - rare) * now[:-1, :-1, :-1]
        now = np.maximum(like_a, like_b)
    return float(now[0, 0, 0])


def window(rng: Random) -> Setting:
    """One window, of nobody or of others who all hold what the slot would."""
    e0, slots = local_epsilon(rng), round(2.0 * 20.0 ** float(rng.random()))
    p = 1.0 if rng.random() < 0.5 else round(float(rng.uniform(0.2, 0.99)), 2)
    chance, others = p / slots, ""
    weight = chance
    if rng.random() < 0.4:
        many = int(rng.integers(0, 3 * slots))
        weight = (1.0 - (1.0 - chance) ** (many + 1)) / (many + 1)
        others = f", others={many}"
    name = ("any_pure", "binary_response", "hemisphere")[int(rng.integers(3))]
    text = f"[(WindowRound({slots}, {name}({e0}), {p}{others}), 1)]"

    def truth(at: Array) -> Array:
        return np.array([[value(e0, slots, weight, alpha)] for alpha in np.exp(at)])

    return Setting(text, epsilons(rng, e0, slots, 5), truth, lambda _: "the game of steered.value", crowded=e0 / 2)

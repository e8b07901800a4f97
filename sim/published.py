"""Published figures of the catalog's cases: what a prediction is shown beside and scored against.

Figures are results, not inputs (inputs, with their sources, are in the catalog's files). Each says how the product
may claim it: `fitted` where an input was chosen to reach it, `predicted` where none was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Claim = Literal["fitted", "predicted"]

_AWS = "AWS Machine Learning blog post of 16 Sept 2026 (Neelakantan, Gupta), as reported by AI.info"
_LLAMA = "arXiv 2407.21783, section 3.3.4 and table 5"
_META = "arXiv 2410.21680"


@dataclass(frozen=True)
class Figure:
    """One published figure of one scenario, under the name of the metric that it is compared with."""

    metric: str
    value: float
    claim: Claim
    tolerance: float | None
    """How far a prediction may be off before tests call it a miss, in the metric's unit; None: it is not scored."""
    source: str
    at_least: bool = False
    """The source states a lower bound only."""


FIGURES: dict[str, tuple[Figure, ...]] = {
    "aws-eks-nvrx-in-process": (
        Figure("training_goodput_aws", 0.31, "fitted", 0.03, _AWS),
        Figure("infra_goodput_aws", 0.87, "fitted", 0.03, _AWS),
    ),
    "aws-eks-nvrx-in-job": (
        Figure("training_goodput_aws", 0.255, "predicted", 0.05, _AWS),
        Figure("infra_goodput_aws", 0.859, "predicted", 0.05, _AWS),
    ),
    "aws-eks-nvrx-kubernetes": (
        Figure("training_goodput_aws", 0.115, "predicted", None, _AWS),
        Figure("infra_goodput_aws", 0.358, "predicted", None, _AWS),
    ),
    "llama3-405b": (
        Figure("goodput", 0.90, "fitted", 0.01, _LLAMA, at_least=True),
        Figure("interruptions", 419.0, "fitted", 65.0, _LLAMA),
    ),
    "meta-rsc-1": (Figure("mtti_s", 1.8 * 3600.0, "predicted", 0.1 * 3600.0, _META),),
}

RECOVERY_EVENT_S: dict[str, float] = {
    "aws-eks-nvrx-in-process": 10.0,
    "aws-eks-nvrx-in-job": 17.0,
    "aws-eks-nvrx-kubernetes": 270.0,
}
"""Published "recovery time" [s]: the mean over restart events; one fault may cause several (reference code)."""


def figures(name: str) -> tuple[Figure, ...]:
    """Return the published figures of a catalog scenario; none for any other."""
    return FIGURES.get(name, ())

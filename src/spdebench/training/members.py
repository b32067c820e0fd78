"""Members of laws: drawn by a trained model for the samples of a part, read from a dataset, and scored.

Members of the law of u given u0 and the seen noise are drawn by networks trained with loss=energy or loss=flow, by
models with ``generative``, and by models that were trained with all of the noise if the unseen noise is drawn from its
true law. Any other model makes a point forecast, which counts as a law of one member.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spdebench.errors import UserError
from spdebench.metrics import Scores, law_scores
from spdebench.metrics.law.members import MembersInBlocks
from spdebench.metrics.law.names import MEMBERS
from spdebench.models import OperatorModel
from spdebench.models.base import evaluation_batch
from spdebench.noise import UnseenNoise
from spdebench.progress import Progress
from spdebench.tasks import Batch, Part

TEST_MEMBERS = MEMBERS
"""The number of members that are drawn for each input of the test part."""
SHOWN = 4
"""The number of inputs whose members a run keeps, for pictures."""
SEEN_NOISE = "dw_seen"
"""The column of a dataset with the increments of the seen noise modes."""


def completion(model: OperatorModel, part: Part) -> UnseenNoise | None:
    """The law of the noise that a part does not show, for a model that was trained with all of the noise; else None.

    It is that of the part's own equation, which may have another J or other eigenvalues than the training data. None
    also if the part shows all of the noise (seen=J), so that u is one path.
    """
    if part.noise != SEEN_NOISE or model.setting.partial:
        return None
    data = part.datasets[0].spec
    laws = [(dataset.spec.equation, dataset.spec.seen) for dataset in part.datasets]
    if any(law != laws[0] for law in laws):
        if (model.setting.equation, model.setting.seen) in laws:  # it was trained on such a mixture
            return None
        raise UserError(
            f"the law of the noise that {part.datasets[0].path.name} does not show is not that of the other files of "
            "the mixture; score them one by one"
        )
    unseen = replace(model.setting, equation=data.equation).unseen(law=True, seen=data.seen)
    return unseen if unseen.functions else None


def draws_for(model: OperatorModel, part: Part) -> bool:
    """Whether members of a law are drawn for this part, instead of one prediction for each sample."""
    return model.draws_members or completion(model, part) is not None


def draw(
    model: OperatorModel,
    batch: Batch,
    members: int,
    seed: int,
    samples: Tensor,
    completed_by: UnseenNoise | None,
    dt: float | None = None,
) -> Tensor:
    """Members (B, m, T, X..), drawn by the model itself or with unseen noise from the law ``completed_by``.

    They are functions of the seed and of the sample numbers ``samples``. ``dt`` is the time between frames of the
    batch, by default that of the training data.
    """
    if completed_by is not None:
        return model.predict_with(completed_by, batch, members, seed, samples=samples, dt=dt)
    return model.sample(batch, members, seed, samples=samples)


class DrawnMembers(MembersInBlocks):
    """Members that a model draws for the samples of a part; their mean is kept, and all members of a few inputs."""

    def __init__(self, model: OperatorModel, part: Part, members: int = TEST_MEMBERS, seed: int = 0) -> None:
        self.model, self.part, self.members, self.seed = model, part, members, seed
        self.shape = (len(part), members, *part.shape)
        self.completed_by = completion(model, part)
        self.mean = torch.zeros((len(part), *part.shape))
        self.shown = torch.zeros((min(SHOWN, len(part)), members, *part.shape))

    def read(self, inputs: slice) -> Tensor:
        numbers = torch.arange(inputs.start, inputs.stop)
        batch = self.part.batch(inputs)
        out = draw(self.model, batch, self.members, self.seed, numbers, self.completed_by, self.part.dt)
        self.mean[inputs] = out.mean(1).cpu()
        kept = slice(inputs.start, min(inputs.stop, len(self.shown)))
        if kept.start < kept.stop:
            self.shown[kept] = out[: kept.stop - kept.start].cpu()
        return out


def write_members(drawn: DrawnMembers, file: Path) -> None:
    """Draw all members and write them as a .npy file, float32 (N m T X..), a few inputs at a time."""
    out = np.lib.format.open_memmap(file, "w+", np.float32, drawn.shape)
    size = max(1, evaluation_batch(drawn.part.shape) // drawn.members)
    with Progress(drawn.shape[0], "samples with members") as bar:
        for start in range(0, drawn.shape[0], size):
            rows = slice(start, min(start + size, drawn.shape[0]))
            out[rows] = drawn.read(rows).cpu().numpy()
            bar.advance(rows.stop - rows.start)
    out.flush()


class TrueMembers(MembersInBlocks):
    """The stored members of the conditional law for the samples of a part, at its frames and points."""

    def __init__(self, part: Part) -> None:
        self.part, self.dataset = part, part.datasets[0]
        self.shape = (len(part), self.dataset.members_file.spec.members, *part.shape)

    def read(self, inputs: slice) -> Tensor:
        return torch.from_numpy(self.part.thinned(self.dataset.members(inputs.start, inputs.stop)))


def true_members(part: Part) -> TrueMembers | None:
    """The members of a part, if a file of them is next to its dataset and is for its samples; else None."""
    if part.noise != SEEN_NOISE or len(part.datasets) > 1:
        return None
    try:
        inputs = part.datasets[0].members_file.spec.inputs
    except UserError:
        return None
    return TrueMembers(part) if np.array_equal(part.rows[0], inputs) else None


def score_law(
    part: Part,
    prediction: Tensor | np.ndarray | DrawnMembers,
    device: torch.device | str = "cpu",
    *,
    one_answer: bool = False,
) -> Scores | None:
    """The scores of members (N m T X..), or of a prediction (N T X..) as a law of one member.

    The truth are the stored members of the conditional law. Without them, members are scored against the samples, with
    fewer scores, and for a prediction the result is None. With ``one_answer`` the given noise determines u, so that the
    true law is the sample itself.
    """
    truth = true_members(part)
    point = len(prediction.shape) == 2 + part.grid.dim
    if truth is None and point and not one_answer:
        return None
    known: Any = part.u.unsqueeze(1) if truth is None else truth
    members: Any = prediction[:, None] if point and not isinstance(prediction, DrawnMembers) else prediction
    return law_scores(members, known, part.grid, times=part.times, device=device)

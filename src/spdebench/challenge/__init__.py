"""Challenges with a hidden truth, and submissions of other people as files.

Four functions lead from a secret to scores:

    challenge = make_challenge("core", secret, "inputs", only="phi41", seen=[8])
    given = open_challenge("inputs").inputs("phi41")  # given.u0, given.dw; no u
    write_submission("my-method", challenge, "card.toml", {("phi41", 0): prediction})
    score_submission("my-method", secret)
"""

from spdebench.challenge.card import Declaration, SubmissionCard, read_card
from spdebench.challenge.inputs import Challenge, Inputs, make_challenge, open_challenge
from spdebench.challenge.predictions import write_submission
from spdebench.challenge.score import score_submission
from spdebench.challenge.secret import read_secret
from spdebench.challenge.submission import Scored, Submission, read_submission, submissions

__all__ = [
    "Challenge",
    "Declaration",
    "Inputs",
    "Scored",
    "Submission",
    "SubmissionCard",
    "make_challenge",
    "open_challenge",
    "read_card",
    "read_secret",
    "read_submission",
    "score_submission",
    "submissions",
    "write_submission",
]

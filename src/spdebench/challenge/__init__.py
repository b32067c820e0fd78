"""Submissions of other people: cards and scores as files, one folder per submission."""

from spdebench.challenge.card import Declaration, SubmissionCard, read_card
from spdebench.challenge.submission import Scored, Submission, read_submission, submissions

__all__ = ["Declaration", "Scored", "Submission", "SubmissionCard", "read_card", "read_submission", "submissions"]

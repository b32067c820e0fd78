"""Findings about the published benchmark, each with its numbers and a command that prints them."""

from spdebench.findings.base import FINDINGS, Finding, FindingOnFile, FindingResult, Sources, ordered, sources

__all__ = ["FINDINGS", "Finding", "FindingOnFile", "FindingResult", "Sources", "ordered", "sources"]

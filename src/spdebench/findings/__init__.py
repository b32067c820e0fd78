"""What the benchmark shows about the published one: findings, each with its numbers and a command that prints them."""

from spdebench.findings.base import FINDINGS, Finding, Found, OnFile, Sources, ordered, sources

__all__ = ["FINDINGS", "Finding", "Found", "OnFile", "Sources", "ordered", "sources"]

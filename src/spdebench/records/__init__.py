"""Run records: one typed value per run, the files they are kept in, and what a set of them says."""

from spdebench.records.record import Addition, FigureData, MetricValue, PartScores, Provenance, Record, Records

__all__ = ["Addition", "FigureData", "MetricValue", "PartScores", "Provenance", "Record", "Records"]

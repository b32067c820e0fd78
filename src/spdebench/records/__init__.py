"""Run records: one typed value per run, the files that hold them, and statistics over them."""

from spdebench.records.record import Addition, FigureData, MetricValue, PartScores, Provenance, Record, Records

__all__ = ["Addition", "FigureData", "MetricValue", "PartScores", "Provenance", "Record", "Records"]

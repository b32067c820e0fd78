"""Campaigns: which runs a table lacks, what they cost, making them, and how far they are."""

"""Run records: what one run gave, where records are kept, and what a set of them says."""

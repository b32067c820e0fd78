"""SPDEBench: the benchmark for learning stochastic PDEs."""

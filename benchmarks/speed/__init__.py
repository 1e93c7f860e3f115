"""What `benchmarks/bench.py` measures: one module for every question."""

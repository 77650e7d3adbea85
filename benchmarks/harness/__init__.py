"""Parts of the device correctness harness: benchmarks/correctness.py."""

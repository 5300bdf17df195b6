"""What the benchmarks share: data in both packages' form, timing side by side, and the report."""

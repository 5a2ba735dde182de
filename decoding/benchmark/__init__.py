"""The benchmark: workloads, contenders, a fair runner and its report."""

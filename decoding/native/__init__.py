"""C++ kernels for CPUs and their binding: int8 weights times a few rows, tree attention, a thread pool."""

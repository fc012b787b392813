"""Share one launch among independent kernels: which, whether it pays, and what the graph needs of memory."""

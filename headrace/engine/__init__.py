"""What runs a topology, whatever runs it: what a task reads, keeps and writes. Knows nothing of Spark."""

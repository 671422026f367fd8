"""The engine: what a task reads, keeps and writes in a batch. It does not know Spark."""

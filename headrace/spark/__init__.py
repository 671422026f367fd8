"""The engine: the tasks of a topology on Spark Structured Streaming."""

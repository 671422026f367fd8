"""The adapter to Spark: its source, stages, state, sink and query run the engine."""

"""The adapter to Spark: a source, stages, state, a sink and a query that run the engine."""

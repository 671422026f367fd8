"""Starts Spark: its session, Java, JVM and workers, and what its errors mean."""

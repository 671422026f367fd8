"""Start Spark: its session, Java, JVM and workers. Also say what its errors mean."""

"""Tools for development: a Kafka broker on your laptop."""

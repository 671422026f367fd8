"""What helps while one develops: a Kafka broker on the laptop."""

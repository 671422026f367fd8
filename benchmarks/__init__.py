"""Programs that measure, each beside something in the same run."""

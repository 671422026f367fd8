"""The life of an application: start, stop, progress, and the folder with its state."""

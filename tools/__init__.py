"""Programs of the project: chaos, fuzzing, the pages made from docstrings."""

"""Examples to run with `headrace run`. `headrace.demos` has more of them."""

"""Stacks of small networks: what they are, how they start, and the one loop that trains them."""

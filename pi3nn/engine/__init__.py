"""Stacks of small networks: what they are, how they start, and the one loop that trains them."""

from pi3nn.engine.threads import have_same_bits_anywhere_in_a_stack

have_same_bits_anywhere_in_a_stack()

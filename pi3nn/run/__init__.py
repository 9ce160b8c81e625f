"""One run: from a configuration to members, stacks, training, and what is stored of them."""

"""From what networks said to intervals and their judgement: arrays in, coefficients and records out."""

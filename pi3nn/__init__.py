"""Prediction intervals from neural networks: PI3NN and its baselines, side by side."""

__version__ = "0.1.0"

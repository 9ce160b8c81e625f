"""Prediction intervals from neural networks: PI3NN and its baselines, side by side."""

import re
from pathlib import Path
from typing import Any

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """Import an estimator when it is asked for: commands need neither scikit-learn nor torch."""
    if name == "__all__":
        return _estimators()
    if not name.endswith("Regressor"):
        raise AttributeError(f"module 'pi3nn' has no attribute '{name}'")
    from pi3nn.models import estimators

    return getattr(estimators, name)


def __dir__() -> list[str]:
    return [*globals(), *_estimators()]


def _estimators() -> list[str]:
    """Their names, read off the files of the methods: importing one takes torch with it."""
    texts = [path.read_text() for path in sorted(Path(__file__).parent.glob("methods/*.py"))]
    classes = [re.search(r"^METHOD = (\w+)\(", text, re.MULTILINE) for text in texts]
    return [f"{found[1]}Regressor" for found in classes if found]

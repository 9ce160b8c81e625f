"""Prediction intervals from neural networks: PI3NN and its baselines, side by side."""

from typing import Any as _Any

__version__ = "0.2.0"


def __getattr__(name: str) -> _Any:
    """Import an estimator when it is asked for: commands need neither scikit-learn nor torch."""
    if name == "__all__":
        return _estimators()
    if name.endswith("Regressor"):
        from pi3nn.models import estimators

        if hasattr(estimators, name):
            return getattr(estimators, name)
    raise AttributeError(f"module 'pi3nn' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*globals(), *_estimators()]


def _estimators() -> list[str]:
    """Their names, read off the files of the methods: importing these takes its time."""
    import re
    from pathlib import Path

    texts = [path.read_text() for path in sorted(Path(__file__).parent.glob("methods/*.py"))]
    classes = [re.search(r"^METHOD = (\w+)\(", text, re.MULTILINE) for text in texts]
    return [*(f"{found[1]}Regressor" for found in classes if found), "QuantileRegressor"]

"""Prediction intervals from neural networks: PI3NN and its baselines, side by side."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pi3nn.estimator import (
        CQRRegressor,
        DERRegressor,
        PI3NNRegressor,
        PIVENRegressor,
        QDRegressor,
        SQRRegressor,
    )

__version__ = "0.2.0"
__all__ = [
    "CQRRegressor",
    "DERRegressor",
    "PI3NNRegressor",
    "PIVENRegressor",
    "QDRegressor",
    "SQRRegressor",
]


def __getattr__(name: str) -> Any:
    """Import an estimator when it is asked for: commands need neither scikit-learn nor torch."""
    if name not in __all__:
        raise AttributeError(f"module 'pi3nn' has no attribute '{name}'")
    from pi3nn import estimator

    return getattr(estimator, name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]

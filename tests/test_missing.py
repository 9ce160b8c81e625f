"""What a setting without a value is."""

from __future__ import annotations

import subprocess
import sys

import omegaconf

from pi3nn.missing import MISSING


def test_it_is_omegaconfs() -> None:
    assert MISSING == omegaconf.MISSING


def test_an_estimator_is_imported_without_omegaconf() -> None:
    code = "import sys; from pi3nn import PI3NNRegressor; print('omegaconf' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

"""The run store: what was trained, under its key, with checksums.

``packs`` is how members lie in files, ``folders`` how older versions kept them, ``index`` finds a
member among many, ``damage`` says what is not whole, ``store`` reads and writes, ``upkeep`` verifies, seals
and clears, ``transfer`` sends members to other machines.
"""

from pi3nn.store.packs import Arrays, DamagedError
from pi3nn.store.store import Store, StoreError

__all__ = ["Arrays", "DamagedError", "Store", "StoreError"]

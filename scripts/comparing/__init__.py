"""The parts of scripts/compare: sets, methods, one result, its files, the run, the page."""

"""How long the tests wait. Slowness is no failure: a machine many times slower passes them too."""

PATIENCE = 600.0  # seconds, until what never comes is given up
AT_ONCE = 30  # seconds of processor time; what takes under one here, and a runaway takes minutes

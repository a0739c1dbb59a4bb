"""How long the tests wait for what takes no time: slowness is no failure."""

AT_ONCE = 30  # seconds of processor time; what takes under one here, and a runaway takes minutes

"""The type checker of shapes and signatures: an int passes for a float, as in Python."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))

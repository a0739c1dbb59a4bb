"""What the Makefile calls: the set-up, the lists of versions, the notebooks, the web site."""

"""Pictures that stand still: matplotlib figures, and attention views drawn by bertviz."""

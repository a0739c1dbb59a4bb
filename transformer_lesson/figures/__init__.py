"""Still pictures: matplotlib figures, and attention views drawn by bertviz."""

"""The lessons: one folder each, with everything only it uses. None imports from another."""

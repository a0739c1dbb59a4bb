"""The lessons: a folder for each, with all that only it uses. None imports from another."""

"""Lesson 17, Your own: nothing here is checked, as what a learner brings has no right answer."""

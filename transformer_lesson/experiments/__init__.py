"""Small trainings that a lesson and a benchmark share."""

"""What is in a trained model: which token reaches which, what heads look at and do."""

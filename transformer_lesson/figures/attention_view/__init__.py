"""Attention weights as lines between words, drawn by bertviz, offline and inert."""

from transformer_lesson.figures.attention_view.view import AttentionView, head_view, model_view

__all__ = ["AttentionView", "head_view", "model_view"]

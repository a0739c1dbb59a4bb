"""The engine of exercises: what is the same for every lesson.

A check goes through `specification` (what an exercise is), `choosing` (variants of its function),
`attempt` (calling an answer), `compare`, `examples`, `diagnosis`, `explanation` and `checks`.
`folds` opens hints and solutions, `question_bank` and `predictions` ask on a `card`, `progress`
and `collection` keep what passed. What lessons say lies beside the engine.
"""

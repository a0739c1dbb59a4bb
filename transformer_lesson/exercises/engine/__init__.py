"""The exercise engine: everything that is the same for every lesson.

A check goes through `specification` (what an exercise is), `choosing` (variants of its function),
`attempt` (calling an answer), `compare`, `examples`, `diagnosis`, `explanation` and `checks`.
`hints` shows hints and solutions, `question_bank` and `predictions` ask on a `question_card`,
`progress` and `collection` store what passed. The lessons' own texts are outside the engine.
"""

"""What learners might write for the exercise of lesson 00."""

from tests.exercises.answers import right, wrong


@right("write_translation")  # asks on after the end, and cuts that off
def _(next_word, source):
    answers = []
    for _ in range(200):
        answers.append(next_word(source, answers))
    return answers[: answers.index("<eos>")]


@right("write_translation")  # asks twice for each word, by name, with a copy of the list
def _(next_word, source):
    written = []
    while next_word(source, written) != "<eos>":
        written.append(next_word(written=list(written), source=source))
    return written


@wrong("write_translation", "unusual", "a generator instead of a list")
def _(next_word, source):
    written = []
    while (word := next_word(source, written)) != "<eos>":
        written.append(word)
        yield word


@wrong("write_translation", "unusual", "a limit of fifteen words")
def _(next_word, source):
    written = []
    while len(written) < 15:
        word = next_word(source, written)
        if word == "<eos>":
            break
        written.append(word)
    return written

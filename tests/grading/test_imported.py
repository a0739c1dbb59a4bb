"""Our own answers do not pass, in whatever disguise; what a learner may use does."""

import pytest

from tests.grading.handed_in import graded_here
from transformer_lesson.grading.judge import IMPORTED

pytestmark = pytest.mark.slow

NAME = "attention_scores"
HEAD = f"def {NAME}(Q, K):\n    "
OURS = f"from transformer_lesson.model.attention import {NAME} as ours\n"
PLAIN = f"from transformer_lesson.lessons.lesson_03.solutions import {NAME} as ours\n"
FIND = f"from transformer_lesson.exercises.engine.catalog import find\nexercise = find('{NAME}')\n"
NEW = f"{NAME} = types.FunctionType(%s, vars(sys.modules[ours.__module__]))"
USED = "import functools, importlib, inspect, math, runpy, subprocess, sys, threading, types\n"
DISGUISES = {
    "the plain solution": f"{PLAIN}{NAME} = ours",
    "wraps": f"{PLAIN}@functools.wraps(ours)\n{HEAD}return ours(Q, K)",
    "closure": f"{PLAIN}def make(f):\n    return lambda *given: f(*given)\n{NAME} = make(ours)",
    "only if it fails": f"{PLAIN}{HEAD}try:\n        return ours(Q, K)\n    except Exception:\n"
    "        return Q @ K.mT / math.sqrt(Q.size(-1))",
    "code copied": f"{OURS}{NEW % 'inspect.unwrap(ours).__code__'}",
    "code replaced": f"{PLAIN}{NEW % 'ours.__code__.replace(co_name=chr(102))'}",
    "code put in at the call": f"{PLAIN}def f(Q, K):\n    return 0\n"
    f"{HEAD}f.__code__ = ours.__code__\n    return f(Q, K)",
    "profile off": f"{PLAIN}{HEAD}sys.setprofile(None)\n    return ours(Q, K)",
    "in a thread": f"{OURS}{HEAD}out = []\n"
    "    one = threading.Thread(target=lambda: out.append(ours(Q, K)))\n"
    "    one.start()\n    one.join()\n    return out[0]",
    "its source renamed": f"{PLAIN}source = inspect.getsource(inspect.getmodule(ours))\n"
    f"exec(source.replace('Q', 'A').replace('{NAME}', 'f'))\n{NAME} = f",
    "its file run": f"{PLAIN}{NAME} = runpy.run_path(inspect.getmodule(ours).__file__)['{NAME}']",
    "loaded anew": f"{PLAIN}{NAME} = importlib.reload(inspect.getmodule(ours)).{NAME}",
    "the right variant": f"{FIND}from transformer_lesson.exercises.engine.choosing import variant\n"
    f"{NAME} = variant(exercise.marked)",
    "the right variant's source": f"{FIND}from transformer_lesson.exercises.engine.choosing import "
    f"as_written\nexec(as_written(exercise.marked))",
    "the marks executed": f"{FIND}choose = lambda right, **wrong: right\n"
    "marks = exercise.marked.__code__.co_filename\n"
    f"exec(open(marks)"
    f".read().split('@exercise')[1].split(')\\n', 1)[1].split('\\n\\n\\n')[0])",
    "the whole check's": f"{FIND}{NAME} = exercise.load_reference()",
    "called before": f"{OURS}import torch\nscores = ours(torch.ones(2, 3), torch.ones(5, 3))\n"
    f"{HEAD}return scores",
    "what a hint gives away": f"from transformer_lesson.exercises import solution\n"
    f"exec(solution('{NAME}').body.split('```')[1].removeprefix('python'))",
    "in another process": f"{HEAD}told = subprocess.run(['echo', 'from transformer_lesson.model "
    "import *; print(...)'], capture_output=True)\n    return Q @ K.mT / math.sqrt(Q.size(-1))",
}


@pytest.mark.parametrize("kind", DISGUISES)
def test_our_answer_is_noticed(kind):
    report = graded_here(NAME, [USED + DISGUISES[kind]])
    assert (report.status, report.message) == ("imported", IMPORTED), report

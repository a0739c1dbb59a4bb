"""Probes: does each sublayer read the residual stream and add to it, and where does a gate act?

PyTorch keeps, for the gradient, which operation read which results. So paths are seen in plain
functions as well as in modules.

Long because one graph is read in many ways: what adds to the stream, what is beside it, and what a
gate, a norm or a network does on the way.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_lesson.doctor.findings import Finding
from transformer_lesson.doctor.patient import Patient, Skip
from transformer_lesson.doctor.tensors import are_ids, logits_of
from transformer_lesson.doctor.watching import Lookups

PRODUCTS = ("Mm", "Addmm", "Bmm", "Baddbmm", "Convolution", "Linear")
ATTENTIONS = ("ScaledDotProduct", "EfficientAttention", "FlashAttention")
VIEWS = (
    "View", "UnsafeView", "Reshape", "ReshapeAlias", "Transpose", "T", "Permute", "Clone", "Expand",
    "Squeeze", "Unsqueeze", "Select", "Slice", "Split", "SplitWithSizes", "Unbind", "ToCopy",
    "Alias", "NativeDropout", "AsStrided",
)  # fmt: skip
ACTIVATIONS = ("Gelu", "Relu", "Silu", "Sigmoid", "Elu", "LeakyRelu", "Mish", "Softplus")
STATISTICS = (
    "Mean", "Sum", "Pow", "Var", "VarMean", "Std", "Rsqrt", "Sqrt", "LinalgVectorNorm", "Norm",
)  # fmt: skip
FAR = 4  # products from the words to an attention: one in a usual block, two with a low rank
LATE = 3  # products from an attention to the end: one in a usual block
Node = torch.autograd.graph.Node


def _are_words(read: Tensor, ids: Tensor) -> bool:
    """Whether these are the ids, or all of them but a few at an end, text by token or turned.

    Also behind another first token, as a decoder gets what it is asked for.
    """
    if are_ids(read, ids):
        return True
    for one in (read, read.mT) if read.dim() == 2 else ():
        n = one.shape[1]
        if len(one) == len(ids) and 3 < n <= ids.shape[1]:
            if torch.equal(one, ids[:, :n]) or torch.equal(one, ids[:, -n:]):
                return True
            if torch.equal(one[:, 1:], ids[:, : n - 1]):
                return True
    return False


class Graph:
    """Which operation reads which, from the words to the logits.

    Attributes:
        end: the operation that returned the logits.
        reads, readers: of each operation, those whose results it reads, and those that read its.
        from_words: all operations that words reach.
        products: those of words with a weight.
        meetings: those of words with words, as attention's.
    """

    def __init__(self, end: Node, words: Iterable[Node]):
        self.end = end
        self.reads: dict[Node, list[Node]] = {}
        self.readers: dict[Node, list[Node]] = {}
        self._order: list[Node] = []
        todo = [end]
        while todo:
            node = todo.pop()
            if node in self.reads:
                continue
            self.reads[node] = [one for one, _ in node.next_functions if one is not None]
            for one in self.reads[node]:
                self.readers.setdefault(one, []).append(node)
                todo.append(one)
        self.from_words = set(self.distances(words, self.readers))
        self.products, self.meetings = set(), set()
        for node in self.from_words:
            kind = _kind(node)
            if any(word in kind for word in ATTENTIONS):
                self.meetings.add(node)
            elif kind in PRODUCTS:
                both = sum(one in self.from_words for one in self.reads[node]) > 1
                (self.meetings if both else self.products).add(node)

    def distances(
        self,
        starts: Iterable[Node],
        along: dict[Node, list[Node]],
        counted: Iterable[Node] = (),
        closed: Iterable[Node] = (),
    ) -> dict[Node, int]:
        """Return, for each operation, how many of those counted lie before it, at least.

        Args:
            along: `reads` or `readers`.
            counted: operations that count as one on the way; the starts don't count.
            closed: operations that no way passes; one that is reached has a distance.
        """
        counted, closed = set(counted), set(closed)
        distance = {node: 0 for node in starts if node in self.reads}
        first, todo = set(distance), deque(distance)
        while todo:
            node = todo.popleft()
            if node in closed:
                continue
            step = int(node in counted and node not in first)
            for one in along.get(node, ()):
                if distance.get(one, math.inf) > distance[node] + step:
                    distance[one] = distance[node] + step
                    (todo.append if step else todo.appendleft)(one)
        return distance

    def in_order(self) -> list[Node]:
        """Return all operations, each after those that it reads."""
        if not self._order:
            seen: set[Node] = set()
            todo = [(self.end, False)]
            while todo:
                node, done = todo.pop()
                if done:
                    self._order.append(node)
                elif node not in seen:
                    seen.add(node)
                    todo.append((node, True))
                    todo += [(one, False) for one in self.reads[node] if one not in seen]
        return self._order

    def weight(self, product: Node) -> Tensor | None:
        """Return the weight of a product."""
        todo = [one for one in self.reads[product] if one not in self.from_words]
        found = []
        while todo:
            node = todo.pop()
            if hasattr(node, "variable"):
                found.append(node.variable)
            todo += self.reads[node]
        return max(found, key=lambda one: one.dim(), default=None)

    def same(self, node: Node) -> Node:
        """Return the operation whose numbers these are: views and dropout are passed."""
        while _kind(node) in VIEWS:
            below = [one for one in self.reads[node] if one in self.from_words]
            if len(below) != 1:
                break
            node = below[0]
        return node


@dataclass
class Stack:
    """A graph as one side's words see it, up to where that side ends.

    Attributes:
        words: where they are looked up.
        ends: the logits; of an encoder, what the decoder reads.
        products, meetings: those of this side.
        late: how many products from an attention to an end are too many.
        cut: products without a way around them, between two attentions.
        tail: products without a way around them, behind the last attention.
        counted: products and meetings, without those at either end that have no way around.
        beside: the operations of other residual streams than the words', such as that of tokens
            which the model adds to each text and drops at the end.
    """

    graph: Graph
    words: list[Node]
    ends: list[Node]
    products: set[Node]
    meetings: set[Node]
    late: int

    def __post_init__(self):
        after = self.graph.distances(self.meetings, self.graph.readers)
        before = self.graph.distances(self.meetings, self.graph.reads)
        alone = {one for one in self.products if not self.around(one)}
        self.cut = {one for one in alone if one in after and one in before}
        self.tail = alone - set(before)
        self.counted = (self.products | self.meetings) - (alone - self.cut)
        self.beside = {node for part in self._parts() if self._is_stream(part) for node in part}

    def _parts(self) -> Iterator[set[Node]]:
        """Yield what hangs together without a product or meeting, apart from the words' stream.

        From there no word comes, and to no end it leads, but through one of these.
        """
        graph = self.graph
        seen = {*self.counted, *graph.distances(self.words, graph.readers, closed=self.counted)}
        seen |= set(graph.distances(self.ends, graph.reads, closed=self.counted))
        for start in graph.in_order():
            part, todo = set(), [start]
            while todo:
                node = todo.pop()
                if node not in seen and node in graph.from_words:
                    seen.add(node)
                    part.add(node)
                    todo += [*graph.reads[node], *graph.readers.get(node, ())]
            if part:
                yield part

    def _is_stream(self, part: set[Node]) -> bool:
        """Whether two sublayers add to it, and a matrix reads it."""
        graph, adds = self.graph, 0
        for node in part:
            both = [graph.same(one) for one in graph.reads[node]] if _kind(node) == "Add" else []
            added = [one for one in both if one in self.counted]
            rest = [one for one in both if one not in self.counted and not _is_bias(graph, one)]
            adds += len(added) == len(rest) == 1
        readers = {one for node in part for one in graph.readers.get(node, ())}
        return adds > 1 and bool(readers & self.products)

    def around(self, node: Node) -> bool:
        """Whether words reach an end on a way around this operation."""
        reached = self.graph.distances(self.words, self.graph.readers, closed=[node])
        return any(one in reached and one is not node for one in self.ends)

    def last(self) -> list[Node]:
        """Return each attention's last product, of weights with values."""
        found = []
        for one in self.meetings:
            on = self.graph.distances([one], self.graph.readers, closed=self.graph.products)
            if not any(other in on for other in self.meetings if other is not one):
                found.append(one)
        return found

    def off(self) -> list[Node]:
        """Return attentions and matrices that read or add to something else than the stream."""
        graph, found = self.graph, []
        starts, all_ends = [*self.words, *self.beside], [*self.ends, *self.beside]
        into = graph.distances(starts, graph.readers, self.counted)
        out = graph.distances(all_ends, graph.reads, self.counted)
        last = set(self.last())
        for one in self.meetings:
            if into.get(one, 0) >= FAR or (one in last and out.get(one, 0) >= self.late):
                found.append(one)
        reads = graph.distances(starts, graph.readers, self.counted, self.meetings)
        ends = graph.distances(all_ends, graph.reads, self.counted, self.meetings)
        after = graph.distances(self.meetings, graph.readers, self.counted - self.meetings)
        before = graph.distances(self.meetings, graph.reads, self.counted - self.meetings)
        for one in self.products & self.counted:
            reads_off = one not in reads and after.get(one, 0) >= 1 and out.get(one, 0) >= 1
            adds_off = one not in ends and before.get(one, 0) >= 1 and reads.get(one, 0) >= 1
            if reads_off or (adds_off and self._feeds_whole_attention(one)):
                found.append(one)
        return found

    def _feeds_whole_attention(self, product: Node) -> bool:
        """Whether all of an attention's projections lie behind this: it is before it, not in it."""
        graph = self.graph
        behind = graph.distances([product], graph.readers, closed=self.meetings)
        met = [one for one in self.meetings if one in behind]
        near = graph.distances(met, graph.reads, closed=self.products | self.meetings - set(met))
        return set(near) & self.products <= set(behind)

    def times(self) -> int:
        """Return on how many ways words reach an end through sums, factors and norms alone."""
        count: dict[Node, int] = {}

        def ways(node: Node) -> int:
            """Count the ways from the words to here."""
            kind = _kind(node)
            if node in self.counted or kind in STATISTICS:
                return 0
            return sum(count.get(one, 0) for one in self.graph.reads[node])

        for node in self.graph.in_order():
            if node in self.tail:  # a head's activation may have ways of its own
                return sum(count.get(one, 0) for one in self.graph.reads[node])
            count[node] = 1 if node in self.words else ways(node)
        return max(count.get(one, 0) for one in self.ends)


def _is_bias(graph: Graph, node: Node) -> bool:
    """Whether this is a weight of one axis, or a view of one."""
    while _kind(node) in VIEWS and len(graph.reads[node]) == 1:
        node = graph.reads[node][0]
    return hasattr(node, "variable") and node.variable.dim() < 2


def _kind(node: Node) -> str:
    return node.name().rstrip("0123456789").removesuffix("Backward")


def stacks(patient: Patient) -> list[Stack]:
    """Return what words of each side pass.

    Raises:
        Skip: the logits have no gradient, the ids are looked up nowhere, or nothing meets.
    """
    texts = patient.aside()
    found: list[list[Node]] = [[] for _ in texts]

    def note(_table: Tensor, ids: Tensor, rows: Tensor) -> None:
        """Note, for each side of the batch, what is looked up by its ids."""
        for side, words in zip(found, texts, strict=True):
            if rows.grad_fn is not None and _are_words(ids, words):
                side.append(rows.grad_fn)

    patient.model.eval()
    with torch.enable_grad(), Lookups(note):
        output = (patient.given.forward or patient.model)(*texts)
    end = logits_of(output).grad_fn
    if end is None or not all(found):
        raise Skip("no gradient leads from the logits to where the ids are looked up")
    graph = Graph(end, [one for words in found for one in words])
    found = _sides(graph, found)
    target = set(graph.distances(found[-1], graph.readers))
    made = [Stack(graph, found[-1], [end], graph.products & target, graph.meetings & target, LATE)]
    if len(found) > 1:
        rest = graph.from_words - target
        ends = [one for one in rest if any(x in target for x in graph.readers.get(one, ()))]
        inside = (graph.products & rest, graph.meetings & rest)
        made.append(Stack(graph, found[0], ends, *inside, LATE + 1))
    if not any(one.meetings for one in made):
        raise Skip("no attention was seen")
    return made


def _sides(graph: Graph, found: list[list[Node]]) -> list[list[Node]]:
    """Return the words by side, also where one text goes into an encoder and into a decoder.

    An encoder's words reach the logits through attention alone.
    """
    if len(found) > 1:
        return found
    (words,) = found
    whole = Stack(graph, words, [graph.end], graph.products, graph.meetings, LATE)
    near = graph.distances([graph.end], graph.reads, closed=whole.counted)
    target, source = ([one for one in words if (one in near) is side] for side in (True, False))
    if target and graph.meetings - set(graph.distances(target, graph.readers)):
        return [source, target]
    return found


def paths(patient: Patient) -> Iterator[Finding]:
    """Follow the words' ways to the logits: around each sublayer, to it and from it."""
    told = "The words' ways to the logits were followed."
    made = stacks(patient)
    for stack in made:
        lone = [one for one in stack.last() if not stack.around(one)]
        if (lone or stack.cut) and "residual_missing" not in patient.found:
            what = "an attention" if lone else "a matrix between two attentions"
            yield Finding(
                "residual_missing",
                told,
                f"No way leads around {what}.",
                _at(patient, stack, [*lone, *stack.cut]),
            )
            return
    if patient.found & {"residual_missing"}:
        return
    for stack in made:
        off, times = stack.off(), stack.times()
        if off:
            yield Finding(
                "off_the_stream",
                told,
                "Some pass another sublayer first.",
                _at(patient, stack, off),
            )
            return
        if times > 1:
            yield Finding(
                "residual_doubled", told, f"{times} of them pass no sublayer, where one is usual."
            )
            return


def gates(patient: Patient) -> Iterator[Finding]:
    """See what each activation reads, and whether an attention's projections read one norm."""
    told = "The words' ways to the logits were followed."
    for stack in stacks(patient):
        graph = stack.graph
        late = [one for one in graph.in_order() if one in graph.from_words]
        over = [
            x for x in late if _kind(x) in ACTIVATIONS and _two_products(graph, _below(graph, x))
        ]
        if over:
            moved = "An activation reads the product of a gate and a value."
            yield Finding("gate_after_product", told, moved, _at(patient, stack, over))
        onward = graph.distances(stack.ends, graph.reads, closed=stack.meetings)
        linear = [x for x in late if _two_products(graph, x) and _feeds_product(graph, x)]
        linear = [x for x in linear if x in onward]  # else it is a part of an attention
        if linear:
            moved = "Two matrices' results are multiplied, and neither passes an activation."
            yield Finding("gate_without_activation", told, moved, _at(patient, stack, linear))
        one_matrix = [x for x in late if _after_a_larger(stack, x)]
        if one_matrix and "linear_feed_forward" not in patient.found:
            moved = "A matrix reads what a larger one has returned, unchanged."
            yield Finding("linear_feed_forward", told, moved, _at(patient, stack, one_matrix))
        some = [one for one in stack.last() if _norm_on_some(graph, one)]
        if some:
            moved = "One projection reads the norm's output, another one its input."
            yield Finding("norm_on_query_only", told, moved, _at(patient, stack, some))
        if over or linear or some:
            return


def _after_a_larger(stack: Stack, node: Node) -> bool:
    """Whether this product reads what one with more results, of as many numbers, has returned."""
    graph, inside = stack.graph, stack.products & stack.counted
    if node not in inside:
        return False
    before = _of_product(graph, _below(graph, node))
    if before not in inside:
        return False
    read, returned, wide = (
        int(one._input_metadata[0].shape[-1]) for one in (_below(graph, before), node, before)
    )
    return read == returned < wide


def _below(graph: Graph, node: Node) -> Node:
    """Return the operation whose numbers this one reads."""
    words = [one for one in graph.reads[node] if one in graph.from_words]
    return graph.same(words[0]) if words else node


def _two_products(graph: Graph, node: Node) -> bool:
    """Whether this multiplies the results of two matrices, number by number."""
    below = [one for one in graph.reads[node] if one in graph.from_words]
    if _kind(node) != "Mul" or len(below) != 2:
        return False
    return all(_of_product(graph, one) in graph.products for one in below)


def _of_product(graph: Graph, node: Node) -> Node:
    """Return the operation whose numbers these are, but for a bias."""
    node = graph.same(node)
    words = [one for one in graph.reads[node] if one in graph.from_words]
    return graph.same(words[0]) if _kind(node) == "Add" and len(words) == 1 else node


def _feeds_product(graph: Graph, node: Node) -> bool:
    """Whether a matrix reads these numbers."""
    todo = [node]
    while todo:
        readers = graph.readers.get(todo.pop(), ())
        if any(one in graph.products for one in readers):
            return True
        todo += [one for one in readers if _kind(one) in VIEWS]
    return False


def _norm_on_some(graph: Graph, attention: Node) -> bool:
    """Whether of an attention's projections one reads a norm's output, and one its input."""
    near = graph.distances([attention], graph.reads, closed=graph.products)
    inputs = set()
    for product in graph.products & set(near):
        inputs |= {graph.same(one) for one in graph.reads[product] if one in graph.from_words}
    return any(
        one is not other and other in _through_norm(graph, one)
        for one in inputs
        for other in inputs
    )


def _through_norm(graph: Graph, node: Node) -> set[Node]:
    """Return the operations whose numbers these are, normalized."""
    found, passed = set(), False
    while True:
        words = [one for one in graph.reads[node] if one in graph.from_words]
        data = [one for one in words if not _is_statistic(graph, one)]
        whole = any(name in _kind(node) for name in ("LayerNorm", "RmsNorm"))
        passed |= whole or (_kind(node) in ("Mul", "Div") and len(data) < len(words))
        if len(data) != 1 or node in graph.products or node in graph.meetings:
            return found
        node = graph.same(data[0])
        if passed:
            found.add(node)


def _is_statistic(graph: Graph, node: Node) -> bool:
    """Whether this is a mean, a root of one, or a sum of one with a number."""
    while _kind(node) not in STATISTICS:
        words = [one for one in graph.reads[node] if one in graph.from_words]
        if len(words) != 1 or _kind(node) not in ("Add", "Clamp", "Reciprocal", "ToCopy"):
            return False
        node = words[0]
    return True


def _at(patient: Patient, stack: Stack, nodes: Iterable[Node]) -> str:
    """Return the name of a weight near these operations, the first one's."""
    names = {id(p): name for name, p in patient.model.named_parameters()}
    order = {node: place for place, node in enumerate(stack.graph.in_order())}
    first = min(nodes, key=order.__getitem__)
    near = stack.graph.distances([first], stack.graph.readers)
    after = sorted(stack.products & set(near), key=order.__getitem__)
    weights = [stack.graph.weight(one) for one in after]
    return next((names[id(one)] for one in weights if id(one) in names), "")

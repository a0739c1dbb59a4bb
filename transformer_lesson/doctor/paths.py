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
    for table in (read, read.mT) if read.dim() == 2 else ():
        n = table.shape[1]
        if len(table) == len(ids) and 3 < n <= ids.shape[1]:
            if torch.equal(table, ids[:, :n]) or torch.equal(table, ids[:, -n:]):
                return True
            if torch.equal(table[:, 1:], ids[:, : n - 1]):
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
            self.reads[node] = [
                operand for operand, _ in node.next_functions if operand is not None
            ]
            for operand in self.reads[node]:
                self.readers.setdefault(operand, []).append(node)
                todo.append(operand)
        self.from_words = set(self.distances(words, self.readers))
        self.products, self.meetings = set(), set()
        for node in self.from_words:
            kind = _kind(node)
            if any(word in kind for word in ATTENTIONS):
                self.meetings.add(node)
            elif kind in PRODUCTS:
                both = sum(operand in self.from_words for operand in self.reads[node]) > 1
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
            for neighbor in along.get(node, ()):
                if distance.get(neighbor, math.inf) > distance[node] + step:
                    distance[neighbor] = distance[node] + step
                    (todo.append if step else todo.appendleft)(neighbor)
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
                    todo += [
                        (operand, False) for operand in self.reads[node] if operand not in seen
                    ]
        return self._order

    def weight(self, product: Node) -> Tensor | None:
        """Return the weight of a product."""
        todo = [operand for operand in self.reads[product] if operand not in self.from_words]
        weights = []
        while todo:
            node = todo.pop()
            if hasattr(node, "variable"):
                weights.append(node.variable)
            todo += self.reads[node]
        return max(weights, key=lambda weight: weight.dim(), default=None)

    def same(self, node: Node) -> Node:
        """Return the operation whose numbers these are: views and dropout are passed."""
        while _kind(node) in VIEWS:
            below = [operand for operand in self.reads[node] if operand in self.from_words]
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
        head, tail: products without a way around them, before the first attention and behind
            the last.
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
        alone = {product for product in self.products if not self.around(product)}
        self.cut = {product for product in alone if product in after and product in before}
        self.head, self.tail = alone - set(after), alone - set(before)
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
            both = (
                [graph.same(operand) for operand in graph.reads[node]]
                if _kind(node) == "Add"
                else []
            )
            added = [term for term in both if term in self.counted]
            rest = [term for term in both if term not in self.counted and not _is_bias(graph, term)]
            adds += len(added) == len(rest) == 1
        readers = {reader for node in part for reader in graph.readers.get(node, ())}
        return adds > 1 and bool(readers & self.products)

    def around(self, node: Node) -> bool:
        """Whether words reach an end on a way around this operation."""
        reached = self.graph.distances(self.words, self.graph.readers, closed=[node])
        return any(end in reached and end is not node for end in self.ends)

    def last(self) -> list[Node]:
        """Return each attention's last product, of weights with values."""
        products = []
        for product in self.meetings:
            on = self.graph.distances([product], self.graph.readers, closed=self.graph.products)
            if not any(other in on for other in self.meetings if other is not product):
                products.append(product)
        return products

    def off(self) -> list[Node]:
        """Return attentions and matrices that read or add to something else than the stream."""
        graph, astray = self.graph, []
        starts, all_ends = [*self.words, *self.beside], [*self.ends, *self.beside]
        into = graph.distances(starts, graph.readers, self.counted)
        out = graph.distances(all_ends, graph.reads, self.counted)
        last = set(self.last())
        for node in self.meetings:
            if into.get(node, 0) >= FAR or (node in last and out.get(node, 0) >= self.late):
                astray.append(node)
        reads = graph.distances(starts, graph.readers, self.counted, self.meetings)
        ends = graph.distances(all_ends, graph.reads, self.counted, self.meetings)
        after = graph.distances(self.meetings, graph.readers, self.counted - self.meetings)
        before = graph.distances(self.meetings, graph.reads, self.counted - self.meetings)
        for node in self.products & self.counted:
            reads_off = node not in reads and after.get(node, 0) >= 1 and out.get(node, 0) >= 1
            adds_off = node not in ends and before.get(node, 0) >= 1 and reads.get(node, 0) >= 1
            if reads_off or (adds_off and self._feeds_whole_attention(node)):
                astray.append(node)
        return astray

    def _feeds_whole_attention(self, product: Node) -> bool:
        """Whether all of an attention's projections lie behind this: it is before it, not in it."""
        graph = self.graph
        behind = graph.distances([product], graph.readers, closed=self.meetings)
        met = [meeting for meeting in self.meetings if meeting in behind]
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
            return sum(count.get(operand, 0) for operand in self.graph.reads[node])

        for node in self.graph.in_order():
            if node in self.tail:  # a head's activation may have ways of its own
                return sum(count.get(operand, 0) for operand in self.graph.reads[node])
            count[node] = 1 if node in self.words else ways(node)
            if node in self.head:  # several views of a text that it makes one
                count[node] = min(
                    1, sum(count.get(operand, 0) for operand in self.graph.reads[node])
                )
        return max(count.get(end, 0) for end in self.ends)


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
    lookups: list[list[Node]] = [[] for _ in texts]

    def note(_table: Tensor, ids: Tensor, rows: Tensor) -> None:
        """Note, for each side of the batch, what is looked up by its ids."""
        for side, words in zip(lookups, texts, strict=True):
            if rows.grad_fn is not None and _are_words(ids, words):
                side.append(rows.grad_fn)

    patient.model.eval()
    with torch.enable_grad(), Lookups(note):
        output = (patient.given.forward or patient.model)(*texts)
    end = logits_of(output).grad_fn
    if end is None or not all(lookups):
        raise Skip("no gradient leads from the logits to where the ids are looked up")
    graph = Graph(end, [node for words in lookups for node in words])
    lookups = _sides(graph, lookups)
    target = set(graph.distances(lookups[-1], graph.readers))
    sides = [
        Stack(graph, lookups[-1], [end], graph.products & target, graph.meetings & target, LATE)
    ]
    if len(lookups) > 1:
        rest = graph.from_words - target
        ends = [node for node in rest if any(x in target for x in graph.readers.get(node, ()))]
        inside = (graph.products & rest, graph.meetings & rest)
        sides.append(Stack(graph, lookups[0], ends, *inside, LATE + 1))
    if not any(stack.meetings for stack in sides):
        raise Skip("no attention was seen")
    return sides


def _sides(graph: Graph, lookups: list[list[Node]]) -> list[list[Node]]:
    """Return the words by side, also where one text goes into an encoder and into a decoder.

    An encoder's words reach the logits through attention alone.
    """
    if len(lookups) > 1:
        return lookups
    (words,) = lookups
    stack = Stack(graph, words, [graph.end], graph.products, graph.meetings, LATE)
    near = graph.distances([graph.end], graph.reads, closed=stack.counted)
    target, source = ([word for word in words if (word in near) is side] for side in (True, False))
    if target and graph.meetings - set(graph.distances(target, graph.readers)):
        return [source, target]
    return lookups


def paths(patient: Patient) -> Iterator[Finding]:
    """Follow the words' ways to the logits: around each sublayer, to it and from it."""
    experiment = "The words' ways to the logits were followed."
    sides = stacks(patient)
    for stack in sides:
        lone = [product for product in stack.last() if not stack.around(product)]
        if (lone or stack.cut) and "residual_missing" not in patient.found:
            obstacle = "an attention" if lone else "a matrix between two attentions"
            yield Finding(
                "residual_missing",
                experiment,
                f"No way leads around {obstacle}.",
                _at(patient, stack, [*lone, *stack.cut]),
            )
            return
    if patient.found & {"residual_missing"}:
        return
    for stack in sides:
        off, times = stack.off(), stack.times()
        if off:
            yield Finding(
                "off_the_stream",
                experiment,
                "Some pass another sublayer first.",
                _at(patient, stack, off),
            )
            return
        if times > 1:
            yield Finding(
                "residual_doubled",
                experiment,
                f"{times} of them pass no sublayer, where one is usual.",
            )
            return


def gates(patient: Patient) -> Iterator[Finding]:
    """See what each activation reads, and whether an attention's projections read one norm."""
    experiment = "The words' ways to the logits were followed."
    for stack in stacks(patient):
        graph = stack.graph
        late = [node for node in graph.in_order() if node in graph.from_words]
        over = [
            x for x in late if _kind(x) in ACTIVATIONS and _two_products(graph, _below(graph, x))
        ]
        if over:
            moved = "An activation reads the product of a gate and a value."
            yield Finding("gate_after_product", experiment, moved, _at(patient, stack, over))
        onward = graph.distances(stack.ends, graph.reads, closed=stack.meetings)
        linear = [x for x in late if _two_products(graph, x) and _feeds_product(graph, x)]
        linear = [x for x in linear if x in onward]  # else it is a part of an attention
        if linear:
            moved = "Two matrices' results are multiplied, and neither passes an activation."
            yield Finding("gate_without_activation", experiment, moved, _at(patient, stack, linear))
        one_matrix = [x for x in late if _after_a_larger(stack, x)]
        if one_matrix and "linear_feed_forward" not in patient.found:
            moved = "A matrix reads what a larger one has returned, unchanged."
            yield Finding("linear_feed_forward", experiment, moved, _at(patient, stack, one_matrix))
        some = [attention for attention in stack.last() if _norm_on_some(graph, attention)]
        if some:
            moved = "One projection reads the norm's output, another one its input."
            yield Finding("norm_on_query_only", experiment, moved, _at(patient, stack, some))
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
        int(operation._input_metadata[0].shape[-1])
        for operation in (_below(graph, before), node, before)
    )
    return read == returned < wide


def _below(graph: Graph, node: Node) -> Node:
    """Return the operation whose numbers this one reads."""
    words = [operand for operand in graph.reads[node] if operand in graph.from_words]
    return graph.same(words[0]) if words else node


def _two_products(graph: Graph, node: Node) -> bool:
    """Whether this multiplies the results of two matrices, number by number."""
    below = [operand for operand in graph.reads[node] if operand in graph.from_words]
    if _kind(node) != "Mul" or len(below) != 2:
        return False
    return all(_of_product(graph, operand) in graph.products for operand in below)


def _of_product(graph: Graph, node: Node) -> Node:
    """Return the operation whose numbers these are, but for a bias."""
    node = graph.same(node)
    words = [operand for operand in graph.reads[node] if operand in graph.from_words]
    return graph.same(words[0]) if _kind(node) == "Add" and len(words) == 1 else node


def _feeds_product(graph: Graph, node: Node) -> bool:
    """Whether a matrix reads these numbers."""
    todo = [node]
    while todo:
        readers = graph.readers.get(todo.pop(), ())
        if any(reader in graph.products for reader in readers):
            return True
        todo += [reader for reader in readers if _kind(reader) in VIEWS]
    return False


def _norm_on_some(graph: Graph, attention: Node) -> bool:
    """Whether of an attention's projections one reads a norm's output, and one its input."""
    near = graph.distances([attention], graph.reads, closed=graph.products)
    inputs = set()
    for product in graph.products & set(near):
        inputs |= {
            graph.same(operand) for operand in graph.reads[product] if operand in graph.from_words
        }
    return any(
        normed is not other and other in _through_norm(graph, normed)
        for normed in inputs
        for other in inputs
    )


def _through_norm(graph: Graph, node: Node) -> set[Node]:
    """Return the operations whose numbers these are, normalized."""
    sources, passed = set(), False
    while True:
        words = [operand for operand in graph.reads[node] if operand in graph.from_words]
        data = [word for word in words if not _is_statistic(graph, word)]
        is_norm = any(name in _kind(node) for name in ("LayerNorm", "RmsNorm"))
        passed |= is_norm or (_kind(node) in ("Mul", "Div") and len(data) < len(words))
        if len(data) != 1 or node in graph.products or node in graph.meetings:
            return sources
        node = graph.same(data[0])
        if passed:
            sources.add(node)


def _is_statistic(graph: Graph, node: Node) -> bool:
    """Whether this is a mean, a root of one, or a sum of one with a number."""
    while _kind(node) not in STATISTICS:
        words = [operand for operand in graph.reads[node] if operand in graph.from_words]
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
    weights = [stack.graph.weight(product) for product in after]
    return next((names[id(weight)] for weight in weights if id(weight) in names), "")

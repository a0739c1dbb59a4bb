"""What a low-rank adapter adds to a frozen matrix: two thin matrices, their product, the sum."""

from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from transformer_lesson.figures.plots import DIVERGING, Figure, as_array, draw_matrix

SIDE, THIN = 2.0, 0.14  # inches


def adapted_matrix(
    W: Float[Tensor, "d_out d_in"],
    A: Float[Tensor, "rank d_in"],
    B: Float[Tensor, "d_out rank"],
    alpha: float,
    title: str,
) -> Figure:
    """Return a drawing of W, of B and A along the sides of their product, and of the sum.

    Rows are sorted by B's first column, columns by A's first row; the labels at the ends say which
    they are. The three large matrices share one scale; B and A have their own.

    Args:
        W: the frozen matrix.
        A, B, alpha: as `lora`.
        title: the claim that the figure supports.
    """
    rows, columns = B[:, 0].argsort(), A[0].argsort()
    W, A, B = (one.detach() for one in (W[rows][:, columns], A[:, columns], B[rows]))
    change = alpha / A.size(0) * (B @ A)  # (d_out, d_in)
    alt = (
        f"A frozen matrix, {W.size(0)} × {W.size(1)}, looks like noise. B, {B.size(0)} × "
        f"{B.size(1)}, times A, {A.size(0)} × {A.size(1)}, fades from one sign in two corners to "
        "the other sign in the other two. In the sum the corners are tinted."
    )
    picture, top = Figure(title, alt, 9.0, 3.3), float(as_array(W.abs().max()))
    scale = {"cmap": DIVERGING, "vmin": -top, "vmax": top}
    names = "W, frozen", "", "what runs: the sum"
    for left, matrix, name in zip((0.75, 3.55, 6.1), (W, change, W + change), names, strict=True):
        axes = _axes(picture, left, 0.6, SIDE, SIDE)
        image = draw_matrix(axes, matrix, numbers=False, **scale)
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("columns, by A")
        axes.set_xticks([0, W.size(1) - 1], [f"{columns[0]}", f"{columns[-1]}"], fontsize=8)
        ends = [f"{rows[0]}", f"{rows[-1]}"] if matrix is not change else ["", ""]
        axes.set_yticks([0, W.size(0) - 1], ends, fontsize=8)
    picture.axes[0].set_ylabel("rows, by B")
    _strip(picture, B, (3.0, 0.6, THIN * B.size(1), SIDE), f"B, {B.size(0)} × {B.size(1)}")
    place = 3.55, 0.6 + SIDE + 0.08, SIDE, THIN * A.size(0)
    _strip(picture, A, place, f"A, {A.size(0)} × {A.size(1)}")
    for left, sign in ((2.86, "+"), (5.72, "=")):
        picture.text(left / 9.0, 1.6 / 3.3, sign, fontsize=18, ha="center", va="center")
    picture.colorbar(image, cax=_axes(picture, 8.25, 0.6, 0.1, SIDE), label="weight")
    return picture


def _strip(picture: Figure, thin: Tensor, place: tuple[float, ...], name: str) -> None:
    """Draw one of the two thin matrices, on its own scale."""
    axes, most = _axes(picture, *place), float(as_array(thin.abs().max()))
    draw_matrix(axes, thin, numbers=False, cmap=DIVERGING, vmin=-most, vmax=most)
    axes.set(xticks=[], yticks=[])
    axes.set_title(name, fontsize=9, pad=3)


def _axes(picture: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Return axes at a place given in inches."""
    across, up = picture.get_size_inches()
    return picture.add_axes((left / across, bottom / up, width / across, height / up))

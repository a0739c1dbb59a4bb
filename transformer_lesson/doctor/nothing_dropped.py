"""Dropout that drops nothing, wherever it is called."""

from torch.overrides import TorchFunctionMode


class NoDropout(TorchFunctionMode):
    """Dropout returns what it gets; counts the calls that would have done more."""

    def __init__(self):
        super().__init__()
        self.would_drop = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call the function, with nothing dropped."""
        kwargs = dict(kwargs or {})
        name = getattr(function, "__name__", "")
        if name in ("dropout", "dropout_", "feature_dropout"):
            self.would_drop += bool(kwargs.get("p", args[1] if len(args) > 1 else 0.5))
            return args[0] if args else kwargs["input"]
        if name == "multi_head_attention_forward":
            self.would_drop += bool(kwargs.get("training", True) and args[10])
            kwargs["training"] = False
        if name == "scaled_dot_product_attention":
            self.would_drop += bool(kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0))
            if len(args) > 4:
                args = (*args[:4], 0.0, *args[5:])
            else:
                kwargs["dropout_p"] = 0.0
        return function(*args, **kwargs)

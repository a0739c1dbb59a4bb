"""Texts that try to run, to break out, to hide or to be too much."""

ATTACKS = {
    "script": "</script><script>alert(1)</script><img src=x onerror=alert(2)>",
    "addresses": "<svg onload=alert(3)><img src=https://evil.example/a.png><link rel=stylesheet>",
    "attribute": '" onmouseover="alert(4)" autofocus onfocus=\'alert(5)\' x=` <!-- --!> ]]>',
    "templates": "{{7*7}} ${alert(6)} %s %(x)s %n {0} {x!r} {0.__class__} #{7*7} <%= 7*7 %>",
    "markdown": "[x](javascript:alert(7)) ![x](https://evil.example/b.png) &lt;img src=x&gt; ``` #",
    "mathtext": r"$\frac{ $x$ $$\begin{evil} \undefined $^_$ \(\href{javascript:alert(8)}{x}\)",
    "terminal": "\x1b[2J\x1b]0;owned\x07\x1b]8;;https://evil.example\x07x\x1b]8;;\x07\x9b31m\r\b",
}
ODDITIES = {
    "null bytes": "a\0b\0\0",
    "lone surrogates": "\ud83d half \udc00 other \udcff",
    "right to left": "safe \u202e exe.txt \u202d \u2066 \u2069 \u200f \u061c",
    "every control character": "".join(map(chr, [*range(32), *range(127, 160)])) + "\u2028\u2029",
    "invisible": "a\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e\U000e0041\ufffe\uffff\U0010ffffb",
    "piled up": "Z" + "\u0301\u0489" * 3000,
    "blank": " \t\n\u3000\u2003 ",
    "100,000 letters": "x" * 100_000,
    "2,000 words": "the dog " * 1_000,
}
TEXTS = ATTACKS | ODDITIES

"""What an attention view shows."""

SHOWN = {  # hostile words, and how a view shows them
    "</script><script>alert(1)</script>": "</script><script>al…",
    "<img src=x onerror=alert(2)>": "<img src=x onerror=…",
    "<!--<script>": "<!--<script>",
    "${alert(3)}": "${alert(3)}",
    "\"'`\\": "\"'`\\",
    "{{d3}}": "{{d3}}",
    "\u2028\u2029": r"\u2028\u2029",
    "\ud800": r"\ud800",
    "\0\n": r"\x00\n",
    "\u202eevil": r"\u202eevil",
    "שלום": "שלום",
    "👩\u200d🔬": "👩\u200d🔬",
    "&lt;b&gt;": "&lt;b&gt;",
    " naïve": " naïve",
    "x" * 10_000: "x" * 19 + "…",
}

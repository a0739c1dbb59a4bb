"""Texts that tokenizers cut differently: blanks, marks, scripts, joined characters, accents."""

import random

HARD = (
    *("", " ", "   in front", "behind   ", "a  b   c    d", "\n\n\n", "a\n\n\nb\r\n\tc\t\td"),
    *(
        "naïve café \ufb01 Å ½ ²",
        "Zürich – „Straße“ … €5",
        "你好，世界。",
        "こんにちは、カタカナ",
        "한국어",
    ),
    *(
        "שלום עולם",
        "مرحبا",
        "हिन्दी में",
        "👩‍👩‍👧 👍🏽 🇨🇭",
        "a\u0301\u0308\u200b\ufeffb",
        "\x00\x7f\x80\xa0",
    ),
    *("3.14159 1,234,567 007 1e-10 1234567890", "it's IT'S we'LL they'd 'tis I'M", "x'S\u017f"),
    *("def f(x):\n    return {k: v}\n", "hahahahaha", "CamelCase_and-kebab", "\u2028\u3000 \u2003"),
    *("!!!???...\n\n;;;", "<s> </s> <unk> <0x41> <h1>Title</h1>", "\ud7ff\ue000\U0010ffff"),
)


def drawn(n: int) -> list[str]:
    rng = random.Random(0)
    parts = [
        "abcdeth ",
        " \n\t",
        "<>/h1",
        "éüßñ ",
        "你好世界 ",
        "👍🏽👩‍ ",
        "0123456789., ",
        "'sStTreE ",
    ]
    return [
        "".join(rng.choice(rng.choice(parts)) for _ in range(rng.randrange(1, 60)))
        for _ in range(n)
    ]


TEXTS = [*HARD, *drawn(300)]

"""What a page of the web site may do, written into the page: a content security policy.

Only the site's own files may be fetched, and of inline scripts only those run that were in the page
when it was built, which the policy knows by their hashes.
"""

import re
from pathlib import Path

from lxml import html

from transformer_lesson.explorables.html import source_of

SCRIPT = re.compile(r"<script(?![^>]*(?: src=|application/json))[^>]*>(.*?)</script>", re.DOTALL)
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="[^"]*">\n')
NONCE = re.compile(r"'nonce-[\w-]+'")  # by which a frame's own policy knows its script
CHARSET = '<meta charset="utf-8" />\n'  # must be among a page's first thousand characters
WITHIN = (
    "default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    "font-src 'self'; script-src 'self' {scripts}"
)


def with_policy(text: str) -> str:
    """Return a page with the policy that allows what is in it, and nothing else."""
    text = POLICY.sub("", text, count=1)
    scripts = {source_of(script) for script in SCRIPT.findall(text)}
    for frame in html.fromstring(text).xpath("//iframe/@srcdoc"):  # policies hold in frames, too
        scripts |= set(NONCE.findall(frame))
    policy = WITHIN.format(scripts=" ".join(sorted(scripts)))
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    return text.replace(CHARSET, CHARSET + meta, 1)


def write_policies(app, exception: Exception | None) -> None:
    """Give every page of the site its policy."""
    if exception is None:
        for path in Path(app.outdir).rglob("*.html"):
            path.write_text(with_policy(path.read_text(encoding="utf-8")), encoding="utf-8")

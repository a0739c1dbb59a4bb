"""What axe finds on a page: faults against WCAG 2.2, levels A and AA, and what else is serious."""

from pathlib import Path

from axe_playwright_python.base import AXE_FILE_PATH

AXE = Path(AXE_FILE_PATH).read_text(encoding="utf-8")

FAULTS = """options => async where => (await axe.run(where, {
    iframes: false, preload: false, resultTypes: ["violations"], ...options}))
    .violations.filter(fault => fault.tags.some(tag => /^wcag2\\d?aa?$/.test(tag)) ||
        ["serious", "critical"].includes(fault.impact))
    .map(fault => `${fault.id}: ${fault.nodes.map(node => node.html.slice(0, 150)).join(" | ")}`)"""

RULES = "{rules: {'color-contrast': {enabled: false}, 'target-size': {enabled: true}}}"
FORM = f"where => ({FAULTS})({RULES})(where ?? document)"
"""All but the contrast, on the whole page or where axe is sent."""

# Thousands of words have the same few colors: one of each combination is measured.
CONTRAST = f"""within => {{
    const found = new Map();
    for (const element of document.querySelectorAll(within ?? "body *")) {{
        const text = [...element.childNodes].some(it => it.nodeType === 3 && it.data.trim());
        if (!text || !element.checkVisibility()) continue;
        let behind = element;
        while (behind.parentElement &&
            getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)")
            behind = behind.parentElement;
        const {{color, fontSize, fontWeight}} = getComputedStyle(element);
        const back = getComputedStyle(behind).backgroundColor;
        found.set([color, fontSize, fontWeight, back].join(), element);
    }}
    return ({FAULTS})({{runOnly: ["color-contrast"]}})({{include: [...found.values()]}});
}}"""

TOO_WIDE = """() => [...document.querySelectorAll("body *")].filter(element => {
    if (element.getBoundingClientRect().right <= innerWidth + 1) return false;
    for (let part = element; part; part = part.parentElement)
        if (part.matches("mjx-container, .visually-hidden")
            || ["auto", "scroll"].includes(getComputedStyle(part).overflowX)) return false;
    return element.checkVisibility();
}).map(element => element.outerHTML.slice(0, 120))"""
"""What leaves the screen, except in a part that scrolls by itself, as code and tables may."""

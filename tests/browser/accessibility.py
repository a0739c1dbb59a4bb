"""What axe finds on a page."""

from pathlib import Path

from axe_playwright_python.base import AXE_FILE_PATH

AXE = Path(AXE_FILE_PATH).read_text(encoding="utf-8")

SERIOUS = """options => async where => (await axe.run(where, {
    iframes: false, preload: false, resultTypes: ["violations"], ...options}))
    .violations.filter(fault => ["serious", "critical"].includes(fault.impact))
    .map(fault => `${fault.id}: ${fault.nodes.map(node => node.html.slice(0, 150)).join(" | ")}`)"""

FORM = f"() => ({SERIOUS})({{rules: {{'color-contrast': {{enabled: false}}}}}})(document)"

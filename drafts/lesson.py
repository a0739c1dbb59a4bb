"""Write a lesson's cells from a text file.

Format: a line `@@ markdown ID`, `@@ code ID [hide-source] [hide-output] [tag=...]` begins a cell.
`@@ keep ID` takes a cell of the stored lesson as it is.
"""
import json, re, sys
from pathlib import Path

def build(text, notebook):
    nb = json.loads(Path(notebook).read_text())
    old = {c["id"]: c for c in nb["cells"]}
    cells = []
    for block in re.split(r"^@@ ", text, flags=re.M)[1:]:
        head, _, body = block.partition("\n")
        kind, name, *flags = head.split()
        if kind == "keep":
            cells.append(old[name]); continue
        body = body.strip("\n")
        meta = {}
        hidden = {}
        if "hide-source" in flags: hidden["source_hidden"] = True
        if "hide-output" in flags: hidden["outputs_hidden"] = True
        if hidden: meta["jupyter"] = hidden
        tags = [f[4:] for f in flags if f.startswith("tag=")]
        if tags: meta["tags"] = tags
        cell = {"cell_type": kind, "id": name, "metadata": meta, "source": body.splitlines(keepends=True)}
        if kind == "code":
            o = old.get(name, {})
            cell |= {"execution_count": o.get("execution_count"), "outputs": o.get("outputs", [])}
            cell = {k: cell[k] for k in ("cell_type","execution_count","id","metadata","outputs","source")}
        cells.append(cell)
    nb["cells"] = cells
    Path(notebook).write_text(json.dumps(nb, indent=1, ensure_ascii=False) + "\n")

if __name__ == "__main__":
    build(Path(sys.argv[1]).read_text(), sys.argv[2])

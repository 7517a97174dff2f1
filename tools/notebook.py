"""Run a notebook and keep what it shows; make a page of the documentation from it.

    python tools/notebook.py docs/notebook.ipynb          run it and write the outputs into the file
    python tools/notebook.py docs/notebook.ipynb --page   print it as Markdown

Cells share one namespace and run in this process, without a kernel: what they print, the HTML of
their last value and open matplotlib figures become outputs, as Jupyter writes them. mkdocs loads
this file as a hook and adds a page for every notebook of docs/.
"""

from __future__ import annotations

import argparse
import ast
import base64
import contextlib
import html
import io
import json
from pathlib import Path
from typing import Any

Cell = dict[str, Any]


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of a fresh run."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            cells.append(cell)
            continue
        count += 1
        cells.append({**cell, "execution_count": count, "outputs": _outputs(cell, count, names)})
    return {**notebook, "cells": cells}


def _outputs(cell: Cell, count: int, names: dict[str, Any]) -> list[dict[str, Any]]:
    tree = ast.parse("".join(cell["source"]))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    figures = _figures()
    if value is not None and not figures:
        outputs.append(
            {"data": _shown(value), "execution_count": count, "metadata": {}, "output_type": "execute_result"}
        )
    return outputs + figures


def _shown(value: Any) -> dict[str, list[str]]:
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_().splitlines(keepends=True)
    return data


def _figures() -> list[dict[str, Any]]:
    from matplotlib import pyplot

    outputs = []
    for number in pyplot.get_fignums():
        picture = io.BytesIO()
        pyplot.figure(number).savefig(picture, format="png", dpi=100, metadata={"Software": None})
        data = {"image/png": base64.b64encode(picture.getvalue()).decode()}
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    pyplot.close("all")
    return outputs


def page(notebook: dict[str, Any], name: str) -> str:
    """The notebook as Markdown with its outputs."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        parts += [_markdown(output) for output in cell["outputs"]]
    parts.append(f"[Download this notebook]({name})")
    return "\n\n".join(parts) + "\n"


def _markdown(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text'])}```"
    data = output["data"]
    if "image/png" in data:
        source = f"data:image/png;base64,{data['image/png']}"
        return f'<img alt="The plot of the cell above" src="{source}">'
    if "text/html" in data:
        return f'<div class="output">{"".join(data["text/html"])}</div>'
    return f"<pre>{html.escape(''.join(data['text/plain']))}</pre>"


def on_files(files: Any, config: Any) -> Any:
    """mkdocs: a page beside every notebook."""
    from mkdocs.structure.files import File

    for path in sorted(Path(config["docs_dir"]).rglob("*.ipynb")):
        place = path.relative_to(config["docs_dir"]).with_suffix(".md").as_posix()
        files.append(File.generated(config, place, content=page(read(path), f"{path.name}")))
    return files


def read(path: Path) -> dict[str, Any]:
    """The file as it is."""
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if options.page:
        print(page(read(options.notebook), options.notebook.name), end="")
        return
    import matplotlib

    matplotlib.use("Agg")
    done = run(read(options.notebook))
    text = json.dumps(done, indent=1, ensure_ascii=False)
    options.notebook.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()

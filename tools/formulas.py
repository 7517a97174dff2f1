"""Formulas of the pages as MathML, made when the site is built: a hook for mkdocs.

The pages write formulas as plain text that can be read in the source: indented blocks, with `H_α`,
`e^{−x}`, `Σ_{i∈S}`, `γⁿ` and `δ₀`. Every indented block becomes MathML in pieces that wrap at
relations, so that none is cut off on a narrow screen; `H_α` and `e^ε` in running text get their
subscript and superscript. Code is in fences and stays as it is.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as etree
from html import escape
from typing import Any

from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor
from markdown.treeprocessors import Treeprocessor

LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋ₐₑₒₓₕₖₗₘₙₚₛₜᵢⱼᵣᵤ", "0123456789+−aeoxhklmnpstijru", strict=True))
RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ", "0123456789+−ni", strict=True))
PRIMES = "′″*†"
NAMES = re.compile("exp|log|max|min|sup|inf|erf|var|hit|neutral|rest|Bin|Poisson")
MATHEMATICS = re.compile(r"[=≤≥≈≃∫Σ∈]")
LONG = 10  # symbols
RELATIONS = "=≤≥<>≈≃≡∈"
_TOKEN = re.compile(
    r"(?P<gap> {2,})|(?P<space> )|(?P<number>\d[\d,]*(?:\.\d+)?)"
    r"|(?P<word>[A-Za-z]{2,})|(?P<letter>(?!Σ)[A-Za-zͰ-Ͽ∞∅∂])"
    rf"|(?P<lowered>[{''.join(LOWERED)}]+)|(?P<raised>[{''.join(RAISED)}]+)|(?P<prime>[{PRIMES}]+)"
    r"|(?P<script>[_^])|(?P<open>[({\[])|(?P<close>[)}\]])|(?P<other>.)"
)
# a letter with an index or an exponent in running text; a word with underscores is a name in code
_SCRIPT = (
    r"(?<![A-Za-z0-9_`\\.])((?:[A-Za-zͰ-Ͽ]|\d+(?=\^)|max|min|sup)(?:\\?[*′])?)"
    r"(?:_(\{[^{}]+\}|[A-Za-z0-9Ͱ-Ͽ]{1,3}(?!\w)|alpha)|\^(\{[^{}]+\}|\([^()]*\)|[−-]?[A-Za-z0-9Ͱ-Ͽ]+[₀-₉]*))"
)


class Formula:
    """One line of a formula, read from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens = [(m.lastgroup or "", m.group()) for m in _TOKEN.finditer(text)]
        self._at = 0

    def pieces(self) -> list[str]:
        """MathML of the parts between which the line may be broken: at gaps and at relations."""
        pieces: list[list[str]] = [[]]
        depth = 0
        while self._at < len(self._tokens):
            kind, text = self._tokens[self._at]
            depth += (kind == "open") - (kind == "close")
            # inside brackets only where a piece would otherwise be wider than a telephone
            long = depth <= 2 and len(pieces[-1]) >= LONG
            joint = (depth == 0 or long) and text in (*RELATIONS, "+", "−", "·")
            if pieces[-1] and (kind == "gap" or joint or (long and text == "/")):
                pieces.append(['<mspace width="1.6em"></mspace>'] if kind == "gap" else [])
            made = self._atom()
            if joint and len(pieces) > 1 and not pieces[-1]:
                made[0] = made[0].replace("<mo>", '<mo form="infix">')
            pieces[-1] += made
        return [f"<math>{''.join(piece)}</math>" for piece in pieces if any(piece)]

    def _group(self) -> str:
        """What a script holds: one token, or everything in braces."""
        if self._at >= len(self._tokens):
            return "<mrow></mrow>"
        if self._tokens[self._at][1] != "{":
            return f"<mrow>{''.join(self._atom())}</mrow>"
        self._at += 1
        inside: list[str] = []
        while self._at < len(self._tokens) and self._tokens[self._at][1] != "}":
            inside += self._atom()
        self._at += 1
        return f"<mrow>{''.join(inside)}</mrow>"

    def _atom(self) -> list[str]:
        """One symbol with all its scripts, or several letters that stand side by side."""
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind in ("space", "gap"):
            return []
        made = _symbols(kind, text)
        low, high = self._scripts()
        if low or high:
            base, low, high = made[-1], "".join(low), "".join(high)
            if low and high:
                made[-1] = f"<msubsup>{base}<mrow>{low}</mrow><mrow>{high}</mrow></msubsup>"
            elif low:
                made[-1] = f"<msub>{base}<mrow>{low}</mrow></msub>"
            else:
                made[-1] = f"<msup>{base}<mrow>{high}</mrow></msup>"
        return made

    def _scripts(self) -> tuple[Any, Any]:
        low: list[str] = []
        high: list[str] = []
        while self._at < len(self._tokens):
            kind, text = self._tokens[self._at]
            if kind == "script":
                self._at += 1
                (low if text == "_" else high).append(self._group())
            elif kind in ("lowered", "raised"):
                self._at += 1
                table = LOWERED if kind == "lowered" else RAISED
                plain = Formula("".join(table[c] for c in text))
                (low if kind == "lowered" else high).append(plain._group_all())
            elif kind == "prime":
                self._at += 1
                high.append(f"<mo>{escape(text)}</mo>")
            else:
                break
        return low, high

    def _group_all(self) -> str:
        made: list[str] = []
        while self._at < len(self._tokens):
            made += self._atom()
        return "".join(made)


def _symbols(kind: str, text: str) -> list[str]:
    if kind == "number":
        return [f"<mn>{text}</mn>"]
    if kind == "letter":
        return [f"<mi>{text}</mi>"]
    if kind == "word":
        if NAMES.fullmatch(text):
            return [f'<mi mathvariant="normal">{text}</mi>']
        if text.islower():
            return [f"<mtext>&nbsp;{text}&nbsp;</mtext>"]
        return [f"<mi>{letter}</mi>" for letter in text]
    if kind in ("open", "close"):
        return [f'<mo stretchy="false">{text}</mo>']
    if text in "Σ∫∏":
        return [f'<mo largeop="false">{text}</mo>']
    return [f"<mo>{escape(text)}</mo>"]


def rendered(block: str) -> str:
    """An indented block as HTML."""
    lines = []
    for line in block.rstrip("\n").split("\n"):
        indent = len(line) - len(line.lstrip())
        pieces = " ".join(Formula(line.strip()).pieces())
        style = f' style="padding-left:{min(indent, 24) * 0.4:.1f}em"' if indent else ""
        lines.append(f'<div class="line"{style}>{pieces}</div>')
    return f'<div class="formula">{"".join(lines)}</div>'


class _Blocks(Treeprocessor):
    def run(self, root: etree.Element) -> None:
        for block in list(root.iter("pre")):
            text = _plain(block[0].text or "") if len(block) == 1 else ""
            if MATHEMATICS.search(text):  # other blocks are drawings
                stashed = self.md.htmlStash.store(rendered(text))
                block.clear()
                block.tag, block.text = "p", stashed


def _plain(text: str) -> str:
    for sign, name in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        text = text.replace(sign, name)
    return text


class _Scripts(InlineProcessor):
    def handleMatch(  # type: ignore[override]
        self, m: re.Match[str], data: str
    ) -> tuple[etree.Element, int, int]:
        whole = etree.Element("span", {"class": "symbol"})
        whole.text = m.group(1).replace("\\", "")
        script = etree.SubElement(whole, "sub" if m.group(2) else "sup")
        script.text = (m.group(2) or m.group(3)).strip("{}")
        return whole, m.start(0), m.end(0)


class Formulas(Extension):
    """Both, for Python-Markdown."""

    def extendMarkdown(self, md: Markdown) -> None:
        # before the highlighter takes indented blocks for code
        md.treeprocessors.register(_Blocks(md), "formulas", 40)
        # after code, before escaped stars are taken out of the text
        md.inlinePatterns.register(_Scripts(_SCRIPT, md), "scripts", 185)


def on_config(config: Any) -> Any:
    """Called by mkdocs."""
    config["markdown_extensions"].append(Formulas())
    return config

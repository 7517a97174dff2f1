"""The preprint: its figures are those of their sources, its commands exist, and it is printed as it is written."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import dpcheckin as dp
from documentation.blocks import ROOT
from dpcheckin.numerals import rounded_up

FOLDER = ROOT / "docs" / "preprint"
TEXT = (FOLDER / "preprint.md").read_text(encoding="utf-8")
INLINE = {" ".join(code.split()) for code in re.findall(r"`([^`]+)`", TEXT)}


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def page(name: str) -> str:
    return ((ROOT if name == "README.md" else ROOT / "docs") / name).read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """The body of a text's first table."""
    table = list(itertools.takewhile(lambda line: line.startswith("|"), text[text.index("\n|") :].strip().splitlines()))
    return [cells(line) for line in table[2:]]


def benchmark(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def tightness() -> list[list[str]]:
    module = benchmark("tightness")
    return [row[:5] for row in rows("\n" + module.table(module.stored()))]


def standing() -> list[list[str]]:
    module = benchmark("standing")
    return [row[:5] for row in rows("\n" + module.table(module.stored().values()))]


def accuracy() -> list[list[str]]:
    table = rows(page("accuracy.md").partition("<!-- table -->")[2])
    return [[row[i] for i in (0, 1, 4, 6, 8)] for row in table]


SOURCES: dict[str, Callable[[], list[list[str]]]] = {
    "tightness": tightness,
    "standing": standing,
    "accuracy.md": accuracy,
    "README.md": lambda: rows(page("README.md").partition("## What it changes")[2]),
    "theory.md": lambda: rows("\n" + page("theory.md")[page("theory.md").index("| full shuffle | guarantee |") :]),
    "random-check-ins.md": lambda: rows(page("random-check-ins.md").partition("## Comparison with")[2]),
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_table_has_the_rows_of_its_source(source: str) -> None:
    shown = TEXT.partition(f"<!-- held: {source} -->")[2]
    found = rows(shown)
    assert found and found == SOURCES[source]()


def test_only_the_tables_of_formulas_have_no_source() -> None:
    tables = re.findall(r"(<!-- held: .+ -->\n)?\n\|.+\|\n\|[-|]+\|\n", TEXT)
    assert sorted(held[11:-5] for held in tables if held) == sorted(SOURCES)
    assert tables.count("") == 2  # laws of W, laws G


def prose() -> str:
    """Without tables, commands, the abstract's indentation and the numbers of papers."""
    text = re.sub(r"^\|.*$|`[^`]+`|^#.*$", " ", TEXT, flags=re.M)
    return re.sub(
        r"arXiv [\d.v]+(?: and [\d.]+)?|Section \d+\.\d|[A-Z]\.\d|Theorems? [\d.]+(?: and [\dA.]+)?", " ", text
    )


def test_a_figure_in_the_text_stands_on_a_page_whose_figures_are_tested() -> None:
    names = ["README.md", "theory.md", "errata.md", "gaussian-reports.md", "gaussian-certificate.md"]
    names += ["laplace-certificate.md", "random-check-ins.md", "certificate.md"]
    sources = set(re.findall(r"(?<![\d.])\d+\.\d+(?![\d.]*\d)", "\n".join(map(page, names))))
    derived = {"0.44", "1.44", "0.8064", "0.64", "0.05"}  # the next test, and 0.0005 in per cent
    shown = set(re.findall(r"(?<![\d.])\d+\.\d+", prose()))
    assert len(shown) > 25
    assert shown - derived <= sources


def test_reports_in_the_clear_show_what_mirroring_does() -> None:
    one, absent = 0.8, 0.2
    assert "$1-0.2^2=0.96$" in TEXT and 1 - absent**2 == pytest.approx(0.96)
    assert "$0.8+0.64=1.44$" in TEXT and one + one**2 == pytest.approx(1.44)
    assert "$1-0.44^2=0.8064$" in TEXT and 1 - (1 - one - one**2) ** 2 == pytest.approx(0.8064)


def test_counts_are_those_of_the_stored_results() -> None:
    stored = (ROOT / "docs/results/certificates.jsonl").read_text(encoding="utf-8").splitlines()
    proved = sum(json.loads(line)["verdict"] == "proved" for line in stored)
    assert f"({proved} of {len(stored)};" in TEXT and "all of those certified were proved" in TEXT
    assert proved == len(stored)
    module = benchmark("standing")
    assert f"a sample of {module.SETTINGS} questions" in " ".join(TEXT.split())


def test_the_abstract_states_the_first_row_of_the_first_table() -> None:
    first = SOURCES["README.md"]()[0]
    said = " ".join(TEXT.partition("abstract: |")[2].partition("---")[0].split())
    assert f"{first[1]} becomes {first[2]}, and no guarantee for every randomizer" in said
    assert said.endswith(f"can be below {first[3]}.")


def test_the_line_for_a_notebook_states_the_same() -> None:
    (line,) = [code for code in INLINE if code.startswith("dp.guarantee")]
    stated = eval(line, {"dp": dp})
    assert rounded_up(stated.epsilon.upper) == SOURCES["README.md"]()[0][2]


# --- commands: those of dpcheckin and of ./dev are looked at in every page --------------------------


def test_every_script_and_its_options_exist() -> None:
    scripts = [code.split()[1:] for code in INLINE if code.startswith("python ")]
    assert len(scripts) >= 8
    for name, *rest in scripts:
        if name == "-m":
            assert rest == ["gaussian_types", "verify"]
            assert '"verify"' in (ROOT / "verify" / "gaussian_types" / "__main__.py").read_text(encoding="utf-8")
            continue
        text = (ROOT / name).read_text(encoding="utf-8")
        for word in rest:
            assert not word.startswith("-") or f'"{word}"' in text, (name, word)
            assert "/" not in word or (ROOT / word).exists(), word


def test_every_file_of_the_repository_that_is_named_exists() -> None:
    named = [code for code in INLINE if re.fullmatch(r"(?:docs|verify)/[\w/.-]+", code)]
    assert len(named) > 5
    assert all((ROOT / name).exists() for name in named)


def test_every_reference_is_cited_and_every_citation_is_a_reference() -> None:
    text, _, references = TEXT.partition("## References")
    known = re.findall(r"^- \[(\w+)\]", references, flags=re.M)
    brackets = re.findall(r"\[([A-Z][A-Z0-9]*(?:, [^\]$\\]+)?)\]", text)
    cited = {part for bracket in brackets for part in bracket.split(", ") if re.fullmatch(r"[A-Z][A-Z0-9]*", part)}
    papers = set(re.findall(r"\bP\d\b", text))
    assert known == sorted(known)
    assert cited | papers == set(known)
    repository = "\n".join(file.read_text(encoding="utf-8") for file in ROOT.glob("docs/*.md"))
    assert all(number in repository for number in re.findall(r"\d{4}\.\d{5}(?:v\d)?", references))


# --- what the proofs leave to the reader --------------------------------------------------------------


@pytest.mark.parametrize("e", [1.3, 2.0, 5.0])
def test_the_weights_of_the_six_rays_have_five_vertices(e: float) -> None:
    """Proposition 4: 41 systems, A, B, C, D and N."""
    rays = np.array([ray for ray in itertools.product([1.0, e], repeat=3) if len(set(ray)) > 1]).T
    found, systems = set(), 0
    for size in (1, 2, 3):
        for chosen in itertools.combinations(range(6), size):
            systems += 1
            part = rays[:, chosen]
            weights, _, rank, _ = np.linalg.lstsq(part, np.ones(3), rcond=None)
            if rank == size and np.allclose(part @ weights, 1.0) and (weights > 1e-12).all():
                found.add(frozenset(tuple(rays[:, i] > 1) for i in chosen))
    assert systems == 41
    pairs = {frozenset({ray, tuple(not bit for bit in ray)}) for ray in itertools.product([True, False], repeat=3)}
    pairs.discard(frozenset({(True,) * 3, (False,) * 3}))  # A, B and N
    alone = {frozenset(tuple(i == j for j in range(3)) for i in range(3))}  # C
    pair_wise = {frozenset(tuple(i != j for j in range(3)) for i in range(3))}  # D
    assert found == pairs | alone | pair_wise


def potential(law: list[tuple[float, float]], t: float) -> float:
    return sum(mass * max(value - t, 0.0) for value, mass in law)


def test_the_fifth_vertex_lies_below_two_types() -> None:
    """D below the mean of A and B, for alpha from 1 to e0."""
    rng = np.random.default_rng(1)
    for _ in range(2000):
        e = float(np.exp(rng.uniform(0.01, 5.0)))
        alpha = float(rng.uniform(1.0, e))
        a = [((e - alpha) / e, e / (e + 1)), (1 - alpha * e, 1 / (e + 1))]
        b = [(e - alpha, 1 / (e + 1)), ((1 - alpha * e) / e, e / (e + 1))]
        share = 1 / (2 * e + 1)
        d = [(e * (1 - alpha), share), ((e - alpha) / e, e * share), ((1 - alpha * e) / e, e * share)]
        for t in [value for value, _ in a + b + d]:
            assert potential(d, t) <= (potential(a, t) + potential(b, t)) / 2 + 1e-9 * e * e


def test_weights_of_terms_that_answer_each_other_cannot_be_raised_first() -> None:
    """Theorem 11's remark: a second report chosen by the first makes more weight for the first a loss."""
    e, rise = np.e, 0.2
    after = {
        rise: [(e - 1, 1 / (e + 1)), (-(e - 1) / e, e / (e + 1))],
        -rise: [((e - 1) / e, e / (e + 1)), (1 - e, 1 / (e + 1))],
    }

    def expected(weight: float) -> float:
        return sum(0.5 * potential(law, -weight * first) for first, law in after.items())

    assert expected(1.0) < 0.95 * expected(0.0)


# --- the PDF ----------------------------------------------------------------------------------------------


def test_the_pdf_is_that_of_the_text() -> None:
    """The file's title names the text it was printed from: ./dev preprint prints it anew."""
    printed = (FOLDER / "preprint.pdf").read_bytes()
    assert len(printed) < 1_000_000
    (source,) = re.findall(rb"preprint\.md ([0-9a-f]{16})", printed)
    assert source.decode() == hashlib.sha256((FOLDER / "preprint.md").read_bytes()).hexdigest()[:16]


def test_a_missing_tool_is_one_line(tmp_path: Path) -> None:
    for tool in ("bash", "dirname"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    said = subprocess.run(
        [FOLDER / "build.sh", tmp_path / "out.pdf"], capture_output=True, text=True, env={"PATH": str(tmp_path)}
    )
    assert said.returncode == 1
    assert said.stderr == "preprint: pandoc is missing (Debian and Ubuntu: apt-get install pandoc)\n"


@pytest.mark.skipif(shutil.which("pandoc") is None, reason="pandoc is not installed")
@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_the_preprint_is_printed(tmp_path: Path) -> None:
    """Every formula is read, and it is a paper, not a book."""
    out = tmp_path / "a folder" / "out.pdf"
    out.parent.mkdir()
    subprocess.run([FOLDER / "build.sh", out], check=True, capture_output=True, env=os.environ, timeout=300)
    assert 10 <= len(re.findall(rb"/Type /Page\b", out.read_bytes())) <= 16


@pytest.mark.skipif(shutil.which("pandoc") is None, reason="pandoc is not installed")
def test_a_formula_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    for file in FOLDER.glob("*.*"):
        shutil.copy(file, tmp_path)
    (tmp_path / "preprint.md").write_text("A formula $\\Bigm\\|$ that pandoc does not know.\n", encoding="utf-8")
    said = subprocess.run([tmp_path / "build.sh", tmp_path / "x.pdf"], capture_output=True, text=True)
    assert said.returncode == 1
    assert said.stderr.endswith("preprint: pandoc could not read preprint.md\n")
    assert not (tmp_path / "x.pdf").exists()

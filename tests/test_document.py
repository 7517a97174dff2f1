"""The page of a report: one file that says everything once and can be read anywhere."""

import html
from pathlib import Path

from dpcheckin.document import Document, Table, versions

STATEMENT = "The run is (0.5, 1e-05)-differentially private <for every client>."


def page(**changes: object) -> str:
    given = {
        "kind": "Some report",
        "title": "91% at ε ≤ 0.5",
        "chip": "certified",
        "statement": STATEMENT,
        "figures": {"rounds": "60"},
    }
    return Document(**(given | changes)).html()  # type: ignore[arg-type]


def test_the_statement_is_said_once_and_markup_in_it_is_text() -> None:
    assert page().count(html.escape(STATEMENT)) == 1
    assert "<for every" not in page()


def test_nothing_is_fetched_and_a_narrow_screen_is_provided_for(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG")
    made = page(pictures={picture: "a curve"})
    assert "http" not in made and "<script" not in made
    assert 'src="data:image/png;base64,' in made and 'alt="a curve"' in made
    assert 'name="viewport"' in made and "@media(max-width:560px)" in made


def test_tables_have_heads_rows_and_escaped_cells() -> None:
    made = page(tables=[Table("Settings", [("rate", "<1", "share")], ("option", "value", "what"))])
    cells = '<td data-head="value">&lt;1</td><td data-head="what">share</td>'
    assert f'<th scope="row">rate</th>{cells}' in made
    assert "td[data-head]::before{content:attr(data-head)" in made  # where there is no head row
    assert made.count('<th scope="col">') == 3


def test_a_folded_table_shows_its_heading_and_opens() -> None:
    rows = [("rate", "0.1")]
    shown, folded = (page(tables=[Table("More", rows, folded=way)]) for way in (False, True))
    assert "<details>" not in shown
    assert "<details><summary><h2>More</h2></summary>" in folded and "<details open" not in folded
    assert '<th scope="row">rate</th><td>0.1</td>' in folded


def test_bad_news_look_like_bad_news() -> None:
    assert 'class="chip bad"' in page(bad=True) and 'class="chip bad"' not in page()


def test_no_version_is_named_twice() -> None:
    names = [row[0] for row in versions("numpy", "numpy").rows]
    assert sorted(names) == sorted(set(names))


def test_versions_name_what_is_installed_and_leave_out_what_is_not() -> None:
    named = dict(versions("no-such-package").rows)  # type: ignore[arg-type]
    assert {"Python", "dpcheckin", "numpy"} <= set(named) and "no-such-package" not in named

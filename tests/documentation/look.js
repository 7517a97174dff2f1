/* What is wrong with a page of the site: run inside the page, for test_site_in_a_browser.py. */
() => {
  const wide = document.documentElement.clientWidth;
  const shown = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  // what scrolls by itself, or is cut off on purpose, is not in the way
  const contained = (e) => {
    for (let p = e.parentElement; p && p !== document.body; p = p.parentElement)
      if (getComputedStyle(p).overflowX !== "visible" && p.getBoundingClientRect().right <= wide + 1) return true;
    return false;
  };
  const article = document.querySelector(".md-content article") ?? document.body;
  const overflow = [];
  if (document.documentElement.scrollWidth > wide + 1) overflow.push(`the page is ${document.documentElement.scrollWidth} wide`);
  for (const e of article.querySelectorAll("*"))
    if (shown(e) && e.getBoundingClientRect().right > wide + 1 && !contained(e)) overflow.push(`${e.tagName}#${e.id} ${e.textContent.trim().slice(0, 40)}`);
  for (const e of article.querySelectorAll(".formula math"))
    if (e.getBoundingClientRect().width > e.closest(".formula").clientWidth + 1) overflow.push(`formula ${e.textContent.slice(0, 60)}`);

  // boxes that have to be pushed to and fro to be read
  const sideways = [...article.querySelectorAll("pre, .md-typeset__scrollwrap, .md-typeset__table")]
    .filter((e) => shown(e) && e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent.trim().slice(0, 40));

  // scripts and commands of a formula that stand there as they were typed; code is meant to
  const raw = /(?:^|[^\w])(?:[A-Za-zͰ-Ͽ]|max|min|sup)[*′]?[_^](?:\{|[A-Za-z0-9Ͱ-Ͽ])|\$[^$\s][^$]*\$|\\(?:frac|sum|alpha|delta|epsilon|le|ge)\b/;
  const formulas = [];
  const texts = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    const holder = node.parentElement;
    if (!holder.closest("code, pre, script, style, .doc-heading, .doc-signature") && raw.test(node.textContent)) formulas.push(node.textContent.trim().slice(0, 80));
  }
  for (const e of article.querySelectorAll(".formula")) if (!e.querySelector("math")) formulas.push(e.textContent.slice(0, 60));

  // words in the cells of tables that stand on two lines
  const torn = [];
  for (const cell of article.querySelectorAll("td, th")) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      for (const found of node.textContent.matchAll(/[A-Za-zͰ-Ͽ]{4,}/g)) {
        const range = document.createRange();
        range.setStart(node, found.index);
        range.setEnd(node, found.index + found[0].length);
        const lines = new Set([...range.getClientRects()].filter((r) => r.width > 0).map((r) => Math.round(r.top)));
        if (lines.size > 1) torn.push(found[0]);
      }
    }
  }
  return {
    overflow: overflow.slice(0, 5), sideways: sideways.slice(0, 5), formulas: formulas.slice(0, 8), torn: torn.slice(0, 8),
    ids: [...document.querySelectorAll("[id], a[name]")].map((e) => e.id || e.name),
    links: [...document.querySelectorAll("a[href]")].map((a) => a.href),
  };
}

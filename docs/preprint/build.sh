#!/usr/bin/env bash
# Makes preprint.pdf, beside this file or where it is told to, of preprint.md: pandoc turns the mathematics into MathML,
# Chromium prints it. Nothing is fetched. A formula that pandoc cannot read fails the build.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
out="${1:-$here/preprint.pdf}"

fail() {
    echo "preprint: $1" >&2
    exit 1
}

command -v pandoc >/dev/null || fail "pandoc is missing (Debian and Ubuntu: apt-get install pandoc)"
browser="${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}"
[ -n "$browser" ] || fail "Chromium is missing (Debian: apt-get install chromium; CHROMIUM=/path names another)"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# the title of the file names its source, so that a test sees a stale one
source="$(sha256sum "$here/preprint.md" | cut -c1-16)"
cd "$here"
pandoc --from markdown-auto_identifiers+implicit_figures --to html5 --standalone --mathml --self-contained \
    --fail-if-warnings --metadata pagetitle="Empty seats (preprint.md $source)" --css preprint.css --include-in-header layout.html \
    --resource-path "$here" --output "$work/preprint.html" preprint.md || fail "pandoc could not read preprint.md"
"$browser" --headless --no-sandbox --disable-gpu --disable-background-networking --user-data-dir="$work/profile" \
    --no-pdf-header-footer --disable-pdf-tagging --print-to-pdf="$work/preprint.pdf" "file://$work/preprint.html" >"$work/log" 2>&1 ||
    fail "Chromium did not print: $(tail -n 1 "$work/log")"
mv "$work/preprint.pdf" "$out"
echo "preprint: written to $out" >&2

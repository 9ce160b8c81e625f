from __future__ import annotations

from pi3nn.paper.report import prose


def test_prose_knows_what_the_documents_use() -> None:
    text = "## A `b`\n\nOne **two `x*y*z`** [three](four.md) a < b\n\n| h |\n|---|\n| \\|z\\| |"
    page = prose.to_html(text, shift=1)
    assert "<h3>A <code>b</code></h3>" in page
    assert "<p>One <strong>two <code>x*y*z</code></strong> three a &lt; b</p>" in page
    assert '<div class="wide"><table class="plain">' in page
    assert "<td>|z|</td>" in page
    assert page.count("<div") == page.count("</table></div>") == 1

"""Pages of submissions: the card in the authors' words, and the scores on every problem."""

from __future__ import annotations

from collections.abc import Iterator

from spdebench.report.site.content import Content
from spdebench.report.site.render import Page, Templates


def submission_pages(content: Content, templates: Templates) -> Iterator[Page]:
    """A page for each submission."""
    for name, runs in content.submissions.items():
        assert runs[0].submission is not None
        card = runs[0].submission.card
        found = [(problem, row) for problem in content.problems for row in problem.rows if row.first in runs]
        facts = {
            "model": card.model,
            "authors": ", ".join(card.authors),
            "contact": card.contact,
            "parameters, a complex one counted twice": f"{card.parameters}",
            "training data": card.training_data,
            "training seeds": ", ".join(map(str, card.seeds)),
            "code": card.code,
            "hardware": card.hardware,
            "minutes of training for one seed and problem": f"{card.training_minutes:g}",
        }
        yield templates.render(
            "submission.html", f"submissions/{name}.html", "Leaderboard", card.title, card=card, name=name,
            found=found, facts=facts, places=content.places,
        )  # fmt: skip

"""Cards and scores of submissions: round trips, and mistakes that are one line with the name of the field."""

from __future__ import annotations

import json
import re

import pytest
from tests.submitted import CARD, scored, write_submission_folder

from spdebench.challenge import read_card, read_submission, submissions
from spdebench.challenge.check import check_submissions
from spdebench.challenge.submission import scores_text
from spdebench.errors import UserError


def test_a_card_has_every_field(tmp_path):
    (tmp_path / "card.toml").write_text(CARD)
    card = read_card(tmp_path / "card.toml")
    assert card.authors == ("A. Author", "B. Author") and card.seeds == (0, 1, 2) and card.declaration.no_solver_used
    assert card.training_minutes == 0.5 and card.description.count("\n") == 1


@pytest.mark.parametrize("field", re.findall(r"^(\w+) =", CARD, flags=re.M))
def test_a_missing_field_is_named(field, tmp_path):
    card = re.sub(rf'^{field} = (""".*?"""|.*?)$', "", CARD, flags=re.M | re.S)
    (tmp_path / "card.toml").write_text(card)
    with pytest.raises(UserError, match=rf"card.toml is not .*: (declaration\.)?{field} is missing"):
        read_card(tmp_path / "card.toml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("no_solver_used = true", "no_solver_used = false", "declaration.no_solver_used is false"),
        ("no_solver_used = true", 'no_solver_used = "yes"', "declaration.no_solver_used must be true or false"),
        ("seeds = [0, 1, 2]", "seeds = [0, 0]", "seeds must be different whole numbers"),
        ("seeds = [0, 1, 2]", "seeds = []", "seeds must be different whole numbers"),
        ("parameters = 120", "parameters = -1", "parameters must be between 0 and 10^15, got -1"),
        ("parameters = 120", 'parameters = "many"', "parameters must be a whole number, got 'many'"),
        ("parameters = 120", "parameters = 120\nparams = 3", "unknown field 'params'"),
        ("training_minutes = 0.5", "training_minutes = nan", "training_minutes must be between 0 and 10^9, got nan"),
        ("https://example.org/code", "javascript:alert(1)//", "code must be a web address"),
        ("author@example.org", "me", "contact must be an e-mail address"),
        ("author@example.org", "@<script>", "contact must be an e-mail address"),
        ("parameters = 120", "parameters = 99999999999999999999", "parameters must be between 0 and 10^15"),
        ('title = "A small regression"', 'title = "two\\nlines"', "title must be one line"),
        ('title = "A small regression"', 'title = " "', "title is empty"),
        ('title = "A small regression"', f'title = "{"x" * 300}"', "title has 300 characters"),
        ('"A. Author"', '"\\u001b[31m"', "authors must be one line without control characters"),
        ('title = "A', 'title = A"', "is not the card of a submission: Invalid value"),
    ],
)
def test_a_field_that_does_not_fit_is_named(old, new, message, tmp_path):
    assert old in CARD
    (tmp_path / "card.toml").write_text(CARD.replace(old, new))
    with pytest.raises(UserError, match=re.escape(message)):
        read_card(tmp_path / "card.toml")


def test_submissions_are_read_as_they_were_written(tmp_path):
    results = (scored("burgers", 0), scored("phi41", 0, seen=8, members=16), scored("phi41", 0, again=0.2549))
    write_submission_folder(tmp_path / "second", results)
    write_submission_folder(tmp_path / "first")
    (tmp_path / "README.md").write_text("not a submission")
    first, second = submissions(tmp_path)
    assert (first.name, second.name) == ("first", "second")
    assert second.results == tuple(sorted(results, key=lambda each: each.key))
    assert [each.reproduced for each in second.results] == [None, True, None]
    assert [each.metric for each in second.results] == ["rel_l2", "rel_l2", "energy_score"]
    assert scored(again=0.2551).reproduced is False
    assert submissions(tmp_path / "nowhere") == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v["results"][0].pop("scores"), "results[0].scores is missing"),
        (lambda v: v["results"][0]["scores"].pop("rel_l2"), "the score rel_l2 of phi41 is missing"),
        (lambda v: v["results"][0].update(challenge="abc"), "challenge must be the SHA-256"),
        (lambda v: v["results"][0].update(members=3), "members must be given with seen"),
        (lambda v: v["results"][0].update(seed=7), "phi41 has the training seeds [7], the card says [0]"),
        (lambda v: v["results"][0].update(rank=1), "unknown field 'results[0].rank'"),
        (lambda v: v["results"].append(v["results"][0]), "scored twice for one training seed"),
        (lambda v: v.update(results=[]), "expected version and results, a list that is not empty"),
        (lambda v: v.update(version=2), "version must be 1, got 2"),
        (lambda v: v.update(version=True), "version must be 1, got True"),
        (lambda v: v["results"][0]["scores"]["rel_l2"].update(value="nan"), "rel_l2 of phi41 must be a finite error"),
        (lambda v: v["results"][0]["scores"]["rel_l2"].update(value=-1), "rel_l2 of phi41 must be a finite error"),
        (lambda v: v["results"][0]["scores"]["rel_l2"].update(low=9), "interval of rel_l2 of phi41 ends before"),
        (lambda v: v["results"][0].update(n=10**12), "n must be between 3 and 100000"),
        (lambda v: v["results"][0].update(version="<b>"), "version must be one of spdebench"),
    ],
)
def test_damaged_scores_are_one_line(change, message, tmp_path):
    values = json.loads(scores_text((scored(),)))
    change(values)
    folder = write_submission_folder(tmp_path / "mine")
    (folder / "scores.json").write_text(json.dumps(values))
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        submissions(tmp_path)
    assert "mine" in str(caught.value)


def test_a_name_is_plain(tmp_path):
    with pytest.raises(UserError, match="small letters"):
        read_submission(write_submission_folder(tmp_path / "Mine_1"))
    with pytest.raises(UserError, match="no such submission"):
        read_submission(tmp_path / "other")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"card.toml is missing; docs/submit.md shows a card"):
        read_submission(tmp_path / "empty")


# --- whose challenge it was -----------------------------------------------------------------------------------------
OTHER = "fedcba9876543210" * 4


def listed(folder, commitment, suite="core"):
    (folder / "challenges.toml").write_text(
        f'[[challenge]]\ncommitment = "{commitment}"\nsuite = "{suite}"\nmade = "2026-11-16"\n'
    )


def test_hidden_truth_needs_a_challenge_of_the_maintainers(tmp_path):
    """Anybody can make a challenge and know its secret: only listed ones count, and one's own says so."""
    write_submission_folder(tmp_path / "guess", (scored(challenge=OTHER),))
    (found,) = check_submissions(tmp_path)
    assert not found.error and any("no challenges.toml" in note for note in found.notes)
    listed(tmp_path, "0123456789abcdef" * 4)
    (found,) = check_submissions(tmp_path)
    assert "fedcba987654 of phi41 is not in challenges.toml" in found.error and "--own" in found.error
    assert check_submissions(tmp_path / "guess")[0].error == found.error
    write_submission_folder(tmp_path / "guess", (scored(challenge=OTHER, hidden=False),))
    assert not check_submissions(tmp_path)[0].error
    listed(tmp_path, OTHER, "paper")
    write_submission_folder(tmp_path / "guess", (scored(challenge=OTHER),))
    assert "not one of the suite core" in check_submissions(tmp_path)[0].error


def test_a_closed_challenge_takes_no_more_entries(tmp_path):
    """Its secret is published, so that anybody can score on it and seal the scores."""
    write_submission_folder(tmp_path / "late")
    listed(tmp_path, "0123456789abcdef" * 4)
    assert not check_submissions(tmp_path)[0].error
    text = (tmp_path / "challenges.toml").read_text() + "closed = true\nentries = ['early']\n"
    (tmp_path / "challenges.toml").write_text(text)
    assert "is closed, its secret is published" in check_submissions(tmp_path)[0].error
    (tmp_path / "late").rename(tmp_path / "early")
    assert not check_submissions(tmp_path)[0].error


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"problem": "phi4x"}, "unknown problem of the suite core 'phi4x'"),
        ({"problem": ""}, "unknown problem of the suite core ''"),
        ({"seal": ""}, "the scores of phi41, seed 0, have no seal"),
        ({"again": 0.25}, "the scores of phi41, seed 0, have no seal"),
        ({"seen": 24, "members": 3}, "has no task with seen=24"),
    ],
)
def test_scores_that_cannot_be_are_not_checked_in(tmp_path, changes, message):
    write_submission_folder(tmp_path / "mine", (scored(**changes),))
    assert message in check_submissions(tmp_path)[0].error


@pytest.mark.parametrize("text", ["challenge = 3", "[[challenge]]\nsuite = 'core'", "x = 1", "[[challenge]", "\x00"])
def test_a_damaged_list_of_challenges_is_one_line(tmp_path, text):
    write_submission_folder(tmp_path / "guess")
    (tmp_path / "challenges.toml").write_text(text)
    with pytest.raises(UserError, match="is not a list of challenges"):
        check_submissions(tmp_path)

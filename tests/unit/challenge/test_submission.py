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
    with pytest.raises(UserError, match=rf"card.toml: (declaration\.)?{field} is missing"):
        read_card(tmp_path / "card.toml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("no_solver_used = true", "no_solver_used = false", "declaration.no_solver_used is false"),
        ("no_solver_used = true", 'no_solver_used = "yes"', "declaration.no_solver_used must be true or false"),
        ("seeds = [0, 1, 2]", "seeds = [0, 0]", "seeds must be different whole numbers"),
        ("seeds = [0, 1, 2]", "seeds = []", "seeds must be different whole numbers"),
        ("parameters = 120", "parameters = -1", "parameters must be at least 0"),
        ("parameters = 120", 'parameters = "many"', "parameters must be a whole number, got 'many'"),
        ("parameters = 120", "parameters = 120\nparams = 3", "unknown field 'params'"),
        ("training_minutes = 0.5", "training_minutes = nan", "training_minutes must be a finite number"),
        ("https://example.org/code", "javascript:alert(1)//", "code must be a web address"),
        ("author@example.org", "me", "contact must be an e-mail address"),
        ('title = "A small regression"', 'title = "two\\nlines"', "title must be one line"),
        ('title = "A small regression"', 'title = " "', "title is empty"),
        ('title = "A small regression"', f'title = "{"x" * 300}"', "title has 300 characters"),
        ('"A. Author"', '"\\u001b[31m"', "authors must be one line without control characters"),
        ('title = "A', 'title = A"', "is not TOML"),
    ],
)
def test_a_field_that_does_not_fit_is_named(old, new, message, tmp_path):
    assert old in CARD
    (tmp_path / "card.toml").write_text(CARD.replace(old, new))
    with pytest.raises(UserError, match=re.escape(message)):
        read_card(tmp_path / "card.toml")


def test_submissions_are_read_as_they_were_written(tmp_path):
    results = (scored("burgers", 1), scored("phi41", 0, seen=8, members=16), scored("phi41", 0, again=0.2549))
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
        (lambda v: v["results"][0].update(seed=7), "seed 7 of phi41 is not among the seeds of the card"),
        (lambda v: v["results"][0].update(rank=1), "unknown field 'results[0].rank'"),
        (lambda v: v["results"].append(v["results"][0]), "scored twice for one training seed"),
        (lambda v: v.update(results=[]), "results must be a list"),
        (lambda v: v.update(version=2), "version must be 1"),
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
    with pytest.raises(UserError, match="no such card"):
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


@pytest.mark.parametrize("text", ["challenge = 3", "[[challenge]]\nsuite = 'core'", "x = 1", "[[challenge]", "\x00"])
def test_a_damaged_list_of_challenges_is_one_line(tmp_path, text):
    write_submission_folder(tmp_path / "guess")
    (tmp_path / "challenges.toml").write_text(text)
    with pytest.raises(UserError, match="is not a list of challenges"):
        check_submissions(tmp_path)

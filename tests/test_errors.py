"""What is said of a mistake."""

from __future__ import annotations

from pi3nn.errors import UserError, counted, first_line, nearest, on_one_line, sentence


def test_the_nearest_valid_name_is_asked_after_and_nothing_far_is() -> None:
    assert nearest("yaht", ["boston", "yacht"]) == " (did you mean 'yacht'?)"
    assert nearest("xyz", ["boston", "yacht"]) == ""


def test_a_users_mistake_is_said_in_its_own_words_others_with_their_type() -> None:
    assert sentence(UserError("give\nmore")) == "give\nmore"
    assert sentence(ValueError("no\nframes")) == "ValueError: no"
    assert first_line(ValueError("\n one\ntwo")) == "one"


def test_what_a_user_typed_can_not_break_a_sentence_or_color_a_screen() -> None:
    assert on_one_line("a\nb \x1b[31m naïve 日本") == "a\\nb \\x1b[31m naïve 日本"


def test_a_number_has_the_noun_that_goes_with_it() -> None:
    said = [counted(n, "member") for n in (0, 1, 2)]
    assert said == ["0 members", "1 member", "2 members"]

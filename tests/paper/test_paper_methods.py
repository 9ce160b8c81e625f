"""One list of methods, which a new method need not be in."""

from __future__ import annotations

from pi3nn.paper import paper_methods, published


def test_every_printed_cell_is_of_a_method_in_the_list_with_runs_behind_those_of_table_1() -> None:
    printed = {(table, method) for table, method, _, _ in published.cells()}
    assert {method for _, method in printed} == set(paper_methods.OUT_OF_DISTRIBUTION)
    assert {m for table, m in printed if table == "table1"} == set(paper_methods.UCI)
    assert all(paper_methods.method(name).runs for name in paper_methods.UCI)


def test_methods_of_one_figure_have_different_colours_and_markers() -> None:
    shown = [paper_methods.method(name) for name in paper_methods.UCI]
    assert len({method.colour for method in shown}) == len({m.marker for m in shown}) == 5
    assert len({paper_methods.method(n).colour for n in paper_methods.OUT_OF_DISTRIBUTION}) == 6


def test_a_new_method_goes_by_its_name_and_has_a_colour() -> None:
    assert paper_methods.title("mine") == paper_methods.ood_title("mine") == "mine"
    assert paper_methods.method("mine").colour.startswith("#")
    assert paper_methods.method("mine").colour == paper_methods.method("mine").colour
    assert paper_methods.in_order(["mine", "qd", "pi3nn"]) == ["pi3nn", "qd", "mine"]


def test_the_whole_grid_of_sqr_stands_in_its_column() -> None:
    assert paper_methods.column("sqr_free") == "sqr"
    assert paper_methods.column("qd") == "qd"

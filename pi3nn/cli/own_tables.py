"""What a run on tables of one's own gets, where nothing else is typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pi3nn import config
from pi3nn.errors import UserError

_METHOD = "method=pi3nn_cross"


def added(overrides: Sequence[str]) -> dict[str, str]:
    """What is added, and why: ``experiment=fit`` and its method and, where the data set is no YAML of
    the user's own, the name of the file without its endings, unless said otherwise.

    Raises
    ------
    UserError
        If it would be right for some of the data sets or experiments of a sweep, and not for others.
    """
    typed = {text.lstrip("+").partition("=")[0]: text for text in overrides}
    chosen = config.named_by(typed.get("dataset", ""))
    tables = [name for name in chosen if config.schema_of("dataset", name) == "table"]
    if not tables:
        return {}
    here = typed["dataset"]
    result = {} if "experiment" in typed else {"experiment=fit": f"from {here}"}
    if "method" not in typed and _all_fit(typed):  # others have theirs
        result[_METHOD] = "what is best for data of one's own"
    _check_others(here, tables, [name for name in chosen if name not in tables], result)
    path = typed.get("dataset.path", "").partition("=")[2]
    if "table" in chosen and path and "dataset.name" not in typed:
        result[config.NAMED_BY_FILE] = "from the file's name"
    return result


def _check_others(
    here: str, tables: Sequence[str], others: Sequence[str], wanted: Mapping[str, str]
) -> None:
    """Refuse a sweep over tables and `others`, which would get what is right for tables only."""
    if others and "table" in tables:
        raise UserError(
            f"'{here}': dataset=table needs dataset.path= and dataset.target=, which {others[0]} does not "
            "have: run them apart, or let a YAML of your own start from `table`"
        )
    if others and wanted:
        raise UserError(
            f"'{here}': {tables[0]} is a table of your own, and {others[0]} is not: add "
            f"{' '.join(wanted)} for all of them, or run them apart"
        )


def _all_fit(typed: Mapping[str, str]) -> bool:
    """Whether what is typed as ``experiment=``, or else ``fit``, leaves the method to us."""
    experiments = config.named_by(typed.get("experiment", "experiment=fit"))
    fitting = [name for name in experiments if _fits(name)]
    others = [name for name in experiments if name not in fitting]
    if fitting and others:
        raise UserError(
            f"'{typed['experiment']}': experiment={fitting[0]} takes {_METHOD} for a table of your own, "
            f"experiment={others[0]} another method: add method=, or run them apart"
        )
    return bool(fitting)


def _fits(experiment: str) -> bool:
    """Whether it is ``fit``, or starts from it and names no method."""
    by_default = config.chosen_names([])["method"]
    named = config.chosen_names([f"experiment={experiment}"])["method"]
    return named == by_default and "fit" in config.ancestors("experiment", experiment)

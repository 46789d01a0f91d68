"""One type for a column whose type differs from shard to shard, if it can hold all values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from expunge.errors import InputError
from expunge.files.dictionary_columns import is_view
from expunge.optional import require

__all__ = ["other_values", "with_common_type"]


def with_common_type(schema: Any, name: str, tables: Sequence[Any]) -> Any:
    """The schema of the first table, with a type for the column that those of all tables fit in.

    Text stays text as the first table has it, numbers get the widest type, and a column without any
    value takes the type of the others. Text and numbers have no type in common: a number that
    became text would be another label.

    Parameters
    ----------
    schema : Schema
    name : str
        Of a column.
    tables : sequence of ArrowTable

    Returns
    -------
    Schema

    Raises
    ------
    InputError
    """
    pa = require("pyarrow", "parquet")
    place = schema.get_field_index(name)
    found = [(table, table.schema.field(name)) for table in tables]
    known = [(table, field) for table, field in found if not pa.types.is_null(field.type)]
    types = {field.type for _, field in found}
    if len(types) < 2 or not known:
        return schema
    (first, field), kinds = known[0], {_nature(field.type) for _, field in known}
    if kinds != {"text"}:
        try:
            bare = [pa.schema([pa.field(name, other.type)]) for _, other in known]
            common = pa.unify_schemas(bare, promote_options="permissive").field(name).type
        except pa.ArrowException:
            common = None
        if len(kinds) > 1 or common is None:
            table, other = next(pair for pair in known if pair[1].type != field.type)
            raise other_values(name, first, field.type, table, other.type)
        field = field.with_type(common)
    return schema.set(place, schema.field(place).with_type(field.type))


def other_values(name: str, first: Any, its: Any, second: Any, others: Any) -> InputError:
    """The error for a column that is one thing in one shard and another in the next.

    Parameters
    ----------
    name : str
    first, second : VectorFile
    its, others : object
        What the column holds there.

    Returns
    -------
    InputError
    """
    return InputError(
        f"The column {name!r} holds values of several types",
        f"{its} in {first.path.name} and {others} in {second.path.name}",
        "Give it one type in all files",
    )


def _nature(kind: Any) -> str:
    types = require("pyarrow", "parquet").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_string(kind) or types.is_large_string(kind) or is_view(kind):
        return "text"
    number = types.is_integer(kind) or types.is_floating(kind)
    return "number" if number else str(kind)

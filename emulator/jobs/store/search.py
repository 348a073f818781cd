"""Search over training jobs: search expressions translated to SQL conditions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from sqlalchemy import and_, exists, func, literal, or_, select, union_all

from emulator.exceptions import ValidationException
from emulator.jobs.store import tables
from emulator.number_text import read_number
from emulator.service_model import load_service_model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from botocore.model import ListShape, MapShape, Shape, StructureShape
    from sqlalchemy import ColumnElement, FromClause, Select

    Kind = Literal["text", "number", "time", "boolean", "hyperparameter", "whole"]

# SQLite parses an expression of up to a thousand operators, and fewer parentheses.
_MOST_LEVELS = 20
_MOST_FILTERS = 500
_JOBS = tables.training_jobs
_STAGES = func.json_each(_JOBS.c.transitions).table_valued("value", name="stages")
_METRICS = func.json_each(_JOBS.c.final_metrics).table_valued("value", name="metrics")
_RULES = tables.rule_evaluations

_KINDS: Mapping[str, Kind] = {
    "string": "text",
    "timestamp": "time",
    "boolean": "boolean",
    **dict.fromkeys(("integer", "long", "float", "double"), "number"),
}
_COMPARISONS = {
    "GreaterThan": "__gt__",
    "GreaterThanOrEqualTo": "__ge__",
    "LessThan": "__lt__",
    "LessThanOrEqualTo": "__le__",
    "Equals": "__eq__",
    "NotEquals": "__ne__",
}
_SUGGESTIONS = 10
_OF_TEXT = frozenset({"Equals", "NotEquals", "Contains", "In"})


class Entries(NamedTuple):
    """Entries of a list in a training job: the rows, and the condition that selects the rows of the job."""

    rows: FromClause
    condition: ColumnElement[bool]


class Property(NamedTuple):
    """A property of a training job.

    Attributes:
        value: SQL expression of the value; NULL for a job without the property.
        lists: Lists that contain the property, outermost first.
    """

    name: str
    kind: Kind
    value: ColumnElement[Any]
    lists: tuple[Entries, ...] = ()


def build_condition(request: Mapping[str, Any]) -> ColumnElement[bool]:
    """Build the condition of Search's SearchExpression and VisibilityConditions.

    Raises:
        ValidationException: A training job has no such property, or it does not support the operator or value.
    """
    properties = Properties()
    visible = [
        _compare_visible(number, each, properties)
        for number, each in enumerate(request.get("VisibilityConditions") or (), start=1)
    ]
    expression = request.get("SearchExpression") or {}
    if _count_levels(expression) > _MOST_LEVELS or _count_filters(expression) > _MOST_FILTERS:
        raise ValidationException(
            f"A SearchExpression can have at most {_MOST_LEVELS} levels of SubExpressions and {_MOST_FILTERS} filters."
        )
    if _count_contains(expression) > 1:
        raise ValidationException("'CONTAINS' operator usage limit of 1 exceeded.")
    return and_(literal(value=True), _build_expression(expression, properties), *visible)


def _count_levels(expression: Mapping[str, Any]) -> int:
    return 1 + max(map(_count_levels, expression.get("SubExpressions") or ()), default=0)


def _count_filters(expression: Mapping[str, Any]) -> int:
    own = len(expression.get("Filters") or ())
    own += sum(len(nested["Filters"]) for nested in expression.get("NestedFilters") or ())
    return own + sum(map(_count_filters, expression.get("SubExpressions") or ()))


def _count_contains(expression: Mapping[str, Any]) -> int:
    """Count the filters with the operator Contains, of which SageMaker allows one in a search of training jobs."""
    filters = list(expression.get("Filters") or ())
    for nested in expression.get("NestedFilters") or ():
        filters += nested["Filters"]
    own = sum(1 for each in filters if each.get("Operator") == "Contains")
    return own + sum(_count_contains(each) for each in expression.get("SubExpressions") or ())


def find_sort_column(name: str) -> ColumnElement[Any]:
    """Return the expression to sort by. In ascending order, jobs without a value come first.

    Raises:
        ValidationException: The property is unknown, or has no single value for each training job.
    """
    found = Properties().find(name)
    if found.lists or found.kind == "whole":
        raise ValidationException(f"Results cannot be sorted by {name}: it has no single value.")
    textual = found.kind in ("text", "hyperparameter")
    return func.coalesce(found.value, literal("") if textual else literal(-1))


def select_property_names(region: str, hint: str) -> Select[Any]:
    """Select at most ten names of hyperparameters, tags and metrics that begin with ``hint``."""
    given = func.json_each(_JOBS.c.request, "$.HyperParameters").table_valued("key", name="given")
    tags = tables.tags
    every = union_all(
        select((literal("HyperParameters.") + given.c.key).label("name"))
        .select_from(_JOBS.join(given, literal(value=True)))
        .where(_JOBS.c.region == region),
        select(literal("Tags.") + tags.c.key).where(tags.c.arn == _JOBS.c.arn, _JOBS.c.region == region),
        select(literal("Metrics.") + _read(_METRICS, "name"))
        .select_from(_JOBS.join(_METRICS, literal(value=True)))
        .where(_JOBS.c.region == region),
    ).subquery()
    starts = func.substr(every.c.name, 1, len(hint)) == hint
    return select(every.c.name).distinct().where(starts).order_by(every.c.name).limit(_SUGGESTIONS)


def _build_expression(expression: Mapping[str, Any], properties: Properties) -> ColumnElement[bool]:
    conditions = [properties.compare(each) for each in expression.get("Filters") or ()]
    conditions += [_build_nested(each, properties) for each in expression.get("NestedFilters") or ()]
    conditions += [_build_expression(each, properties) for each in expression.get("SubExpressions") or ()]
    if not conditions:
        return literal(value=True)
    return or_(*conditions) if expression.get("Operator") == "Or" else and_(*conditions)


def _compare_visible(number: int, condition: Mapping[str, Any], properties: Properties) -> ColumnElement[bool]:
    """Build one of the VisibilityConditions, whose members the service model does not require.

    Each is about a tag. Jobs without the tag are visible, too.
    """
    if missing := [member for member in ("Key", "Value") if condition.get(member) is None]:
        raise ValidationException(
            f"Entry {number} of VisibilityConditions has no {' and no '.join(missing)}: give both a Key and a Value."
        )
    if not condition["Key"].startswith("Tags."):
        raise ValidationException(
            f"The Key {condition['Key']!r} in entry {number} of VisibilityConditions does not name a tag: write it as "
            "Tags.<key>."
        )
    tag = properties.find(condition["Key"]).value
    return or_(tag == condition["Value"], tag.is_(None))


def _build_nested(nested: Mapping[str, Any], properties: Properties) -> ColumnElement[bool]:
    """Build the condition that a single entry of the list matches all filters."""
    name = nested["NestedPropertyName"]
    conditions: list[ColumnElement[bool]] = []
    lists: tuple[Entries, ...] = ()
    for each in nested["Filters"]:
        found = properties.find(each["Name"])
        if not each["Name"].startswith(f"{name}.") or not found.lists or (lists and found.lists != lists):
            raise ValidationException(
                f"{each['Name']} is not a property of the entries of {name}: NestedFilters are about the entries of "
                "one list, such as InputDataConfig."
            )
        lists = found.lists
        conditions.append(_compare(found, each))
    return _any_entry(lists, and_(*conditions))


def _any_entry(lists: tuple[Entries, ...], condition: ColumnElement[bool]) -> ColumnElement[bool]:
    rows = lists[0].rows
    for inner in lists[1:]:
        rows = rows.join(inner.rows, literal(value=True))
    found = select(literal(1)).select_from(rows).where(*(each.condition for each in lists), condition)
    return exists(found.correlate(_JOBS))


class Properties:
    """Finds properties by name. Properties of the same list refer to the same rows."""

    def __init__(self) -> None:
        self._lists: dict[str, Entries] = {}

    def compare(self, each: Mapping[str, Any]) -> ColumnElement[bool]:
        """Build the condition of one filter. A filter on a list matches if any of its entries does."""
        found = self.find(each["Name"])
        if not found.lists:
            return _compare(found, each)
        if each.get("Operator") == "NotExists":
            return ~_any_entry(found.lists, found.value.is_not(None))
        return _any_entry(found.lists, _compare(found, each))

    def find(self, name: str) -> Property:
        """Find a property.

        Raises:
            ValidationException: A training job has no property of that name.
        """
        head, _, rest = name.partition(".")
        if '"' in name:  # not in AWS's names, and not allowed in a JSON path of SQLite
            raise _unknown(name)
        if head == "Tags" and rest:
            tags = tables.tags
            own_tag = _look_up(tags, tags.c.value, tags.c.arn == _JOBS.c.arn, tags.c.key == rest)
            return Property(name, "text", own_tag)
        if head == "Metrics" and rest:
            own_metric = _look_up(_METRICS, _read(_METRICS, "value"), _read(_METRICS, "name") == rest)
            return Property(name, "number", own_metric)
        if head in _RUN_STATE_LISTS:
            return self._find_in_table(name, head, rest)
        shape = self._find_shape(name)
        if (column := _COLUMNS.get(name)) is not None:
            return Property(name, _KINDS[shape.type_name], column)
        return self._find_in_request(name)

    def _find_in_table(self, name: str, head: str, rest: str) -> Property:
        table, condition, columns = _RUN_STATE_LISTS[head]
        shape = self._find_shape(name)
        if rest not in columns:
            raise _unknown(name)
        entries = self._lists.setdefault(head, Entries(table, condition))
        return Property(name, _KINDS[shape.type_name], columns[rest], (entries,))

    def _find_shape(self, name: str) -> Shape:
        shape: Shape = load_service_model().shape_for("TrainingJob")
        for part in name.split("."):
            if shape.type_name == "list":
                shape = cast("ListShape", shape).member
            if shape.type_name == "map":
                return cast("MapShape", shape).value
            found = cast("StructureShape", shape).members.get(part) if shape.type_name == "structure" else None
            if found is None:
                raise _unknown(name)
            shape = found
        return cast("ListShape", shape).member if shape.type_name == "list" else shape

    def _find_in_request(self, name: str) -> Property:
        """Find a member of the request; the service model defines its location."""
        shape: Shape = load_service_model().shape_for("TrainingJob")
        source: ColumnElement[Any] = _JOBS.c.request
        lists: list[Entries] = []
        path, done = "$", ""
        parts = name.split(".")
        while parts and shape.type_name == "structure":
            part = parts.pop(0)
            path, done, shape = f'{path}."{part}"', f"{done}.{part}", cast("StructureShape", shape).members[part]
            if shape.type_name == "list":
                rows = func.json_each(source, path).table_valued("value", name=f"entries{done.replace('.', '_')}")
                lists.append(self._lists.setdefault(done, Entries(rows, literal(value=True))))
                source, path, shape = lists[-1].rows.c.value, "$", cast("ListShape", shape).member
        kind = _KINDS.get(shape.type_name, "whole")
        if parts:  # the rest, including dots, is the key of a map
            kind = "hyperparameter" if done == ".HyperParameters" else "text"
            path = f'{path}."{".".join(parts)}"'
        value = source if path == "$" else func.json_extract(source, path)
        if kind == "boolean":
            value = func.coalesce(value, 0)
        return Property(name, kind, value, tuple(lists))


def _compare(found: Property, each: Mapping[str, Any]) -> ColumnElement[bool]:
    operator, value = each.get("Operator") or "Equals", each.get("Value")
    if operator in ("Exists", "NotExists"):
        if value is not None:
            raise ValidationException(f"The filter on {found.name} has the operator {operator}: leave Value out.")
        return found.value.is_not(None) if operator == "Exists" else found.value.is_(None)
    if value is None:
        raise ValidationException(f"The filter on {found.name} has the operator {operator}: it needs a Value.")
    number = read_number(value)
    if found.kind == "text" or (found.kind == "hyperparameter" and (number is None or operator in ("Contains", "In"))):
        return _compare_text(found, operator, value)
    if found.kind == "hyperparameter":
        # A hyperparameter is text. If it and the Value are both numbers, they are compared as numbers.
        return _apply(func.read_number(found.value), operator, number)
    read = _READERS.get(found.kind)
    wanted = None if read is None else read(value)
    if wanted is None:
        raise ValidationException(
            f"The Value {value!r} of the filter on {found.name} is not one of its possible values."
        )
    if operator not in _COMPARISONS or (found.kind == "boolean" and operator not in _OF_TEXT):
        raise ValidationException(f"The operator {operator} is not supported for the property {found.name}.")
    return _apply(found.value, operator, wanted)


def _compare_text(found: Property, operator: str, value: str) -> ColumnElement[bool]:
    if operator not in _OF_TEXT:
        raise ValidationException(f"The operator {operator} is not supported for the text property {found.name}.")
    if operator == "Contains":
        return func.instr(found.value, value) > 0
    if operator == "In":
        return found.value.in_([part.strip() for part in value.split(",")])
    return _apply(found.value, operator, value)


def _apply(column: ColumnElement[Any], operator: str, value: Any) -> ColumnElement[bool]:
    condition: ColumnElement[bool] = getattr(column, _COMPARISONS[operator])(value)
    return or_(condition, column.is_(None)) if operator == "NotEquals" else condition


def _read_boolean(text: str) -> int | None:
    return {"true": 1, "false": 0}.get(text.lower())


def _read_time_ms(text: str) -> int | None:
    """Parse a time in ISO 8601, in UTC unless it has a time zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


_READERS: Mapping[Kind, Callable[[str], float | None]] = {
    "number": read_number,
    "time": _read_time_ms,
    "boolean": _read_boolean,
}


def _unknown(name: str) -> ValidationException:
    return ValidationException(f"Unknown property name: {name}")


def _look_up(table: Any, value: ColumnElement[Any], *conditions: ColumnElement[bool]) -> ColumnElement[Any]:
    return select(value).select_from(table).where(*conditions).correlate(_JOBS).limit(1).scalar_subquery()


def _read(entries: Any, member: str) -> ColumnElement[Any]:
    """Return the expression of a member of a list's entries."""
    return func.json_extract(entries.c.value, f"$.{member}")


_COLUMNS: Mapping[str, ColumnElement[Any]] = {
    "TrainingJobName": _JOBS.c.name,
    "TrainingJobArn": _JOBS.c.arn,
    "TrainingJobStatus": _JOBS.c.status,
    "SecondaryStatus": _JOBS.c.secondary_status,
    "FailureReason": _JOBS.c.failure_reason,
    "ModelArtifacts.S3ModelArtifacts": _JOBS.c.model_artifacts,
    "CreationTime": _JOBS.c.creation_ms,
    "LastModifiedTime": _JOBS.c.last_modified_ms,
    "TrainingStartTime": _JOBS.c.training_start_ms,
    "TrainingEndTime": _JOBS.c.training_end_ms,
    "TrainingTimeInSeconds": _JOBS.c.training_seconds,
    "BillableTimeInSeconds": _JOBS.c.billable_seconds,
}

# Lists in the state of a job: their rows, the condition for the rows of the job, and the expression of each member.
_RUN_STATE_LISTS: Mapping[str, tuple[Any, ColumnElement[bool], Mapping[str, Any]]] = {
    "SecondaryStatusTransitions": (
        _STAGES,
        literal(value=True),
        {
            "Status": _read(_STAGES, "status"),
            "StartTime": _read(_STAGES, "start_ms"),
            "EndTime": _read(_STAGES, "end_ms"),
            "StatusMessage": _read(_STAGES, "message"),
        },
    ),
    "FinalMetricDataList": (
        _METRICS,
        literal(value=True),
        {
            "MetricName": _read(_METRICS, "name"),
            "Value": _read(_METRICS, "value"),
            "Timestamp": _read(_METRICS, "timestamp_ms"),
        },
    ),
    "DebugRuleEvaluationStatuses": (
        _RULES,
        (_RULES.c.region == _JOBS.c.region) & (_RULES.c.training_job_name == _JOBS.c.name),
        {
            "RuleConfigurationName": func.json_extract(_RULES.c.configuration, "$.RuleConfigurationName"),
            "RuleEvaluationJobArn": _RULES.c.arn,
            "RuleEvaluationStatus": _RULES.c.status,
            "StatusDetails": _RULES.c.status_details,
            "LastModifiedTime": _RULES.c.last_modified_ms,
        },
    ),
}

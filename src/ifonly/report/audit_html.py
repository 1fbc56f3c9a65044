"""The audit as an HTML document to hand over: no script, nothing from other hosts, for any screen and for paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ifonly.html.fragments import bullets, document, facts, table, words
from ifonly.population.actions import Cover
from ifonly.population.auditing import Audit
from ifonly.population.group import Group
from ifonly.population.intervals import MOST_RESAMPLED, RESAMPLES
from ifonly.population.moves import Move
from ifonly.printing import capitalised, printable
from ifonly.report import audit_sentences as findings
from ifonly.report.audit_sentences import action_text, between, cost, counted, percent, probability
from ifonly.report.charts import MOST_CURVES, MOST_LETTERS, PATTERNS, bars, costs_chart, curves
from ifonly.report.provenance import Provenance

MOST_DRAWN = 30
"""Groups in a chart; the table has all of them."""
MOST_TOLD = 10
"""Lines of a list of changes."""
MOST_GROUPS = 6
"""Groups whose changes and actions are listed one by one."""
Cell = tuple[str, str] | str
"""The text of a cell, and an aside."""


def audit_html(audit: Audit, provenance: Provenance | None = None) -> str:
    """The whole page."""
    title = f"Recourse to {audit.target}" + (f", by {audit.label(audit.by)}" if audit.by else "")
    made = "" if provenance is None else f'<p class="soft">{words(f"{provenance.made}, {provenance.data}")}</p>'
    sections = [_overview(audit), _groups(audit), _costs(audit), _changes(audit), _actions(audit), _without(audit)]
    sections += ["" if provenance is None else _query(provenance), _method(audit)]
    return document(title, PATTERNS, *filter(None, [made, *sections]), sheet="audit.css")


def _overview(audit: Audit) -> str:
    everybody = audit.everybody
    figures = [
        (f"{everybody.people:,}", "people"),
        (f"{everybody.needing:,}", "need recourse"),
        (f"{everybody.recourse:,}", f"have it ({percent(everybody.share)})" if everybody.needing else "have it"),
        (f"{everybody.without:,}", "provably have none"),
        (f"{everybody.unknown:,}", "left open"),
    ]
    tiles = "".join(f"<li><b>{words(figure)}</b>{words(what)}</li>" for figure, what in figures)
    sentences = findings.differences(audit)
    noise = "" if any(one.real for one in audit.differences) else " noise"
    box = (
        f'<div class="found{noise}"><strong>Differences between groups</strong>{bullets(sentences)}</div>'
        if sentences
        else ""
    )
    notes = "".join(f'<p class="soft small">{words(note)}</p>' for note in findings.notes(audit))
    return f'<p>{words(" ".join(findings.overview(audit)))}</p><ul class="facts">{tiles}</ul>{box}{notes}'


def _groups(audit: Audit) -> str:
    shown = [group for group in (*audit.groups, audit.everybody) if group.needing][-MOST_DRAWN - 1 :]
    if not shown:
        return ""
    rows = [
        (
            group.name,
            [("has", group.share), ("none", group.without / group.needing), ("open", group.unknown / group.needing)],
            f"{percent(group.share)} of {group.needing:,} ({between(group.share_interval, percent)})",
            group.share_interval,
        )
        for group in shown
    ]
    alternative = "; ".join(f"{name}: {value}" for name, _, value, _ in rows)
    chart = _figure(
        "Who has recourse",
        "Of those who need it: the share with its 95% interval.",
        bars(rows, alternative),
        _key([("has", "have recourse"), ("none", "provably have none"), ("open", "left open")]),
    )
    return f"<section><h2>Who has recourse{_by(audit)}</h2>{chart}{_group_table(audit)}{_comparisons(audit)}</section>"


def _group_table(audit: Audit) -> str:
    header = (audit.label(audit.by) or "group", "people", "already so", "need it", "have it", "have none", "open")
    rows: list[Sequence[Cell]] = [
        [
            _name(group), f"{group.people:,}", f"{group.unneeded:,}", f"{group.needing:,}",
            (counted(group.recourse, group), between(group.share_interval, percent)),
            counted(group.without, group), counted(group.unknown, group),
        ]
        for group in (*audit.groups, audit.everybody)
    ]  # fmt: skip
    return _table("All groups, with 95% intervals of the shares.", header, rows, total=bool(audit.groups))


def _cost_table(audit: Audit) -> str:
    header = (audit.label(audit.by) or "group", "have recourse", "median", "mean", "10% pay at most", "90% pay at most")
    rows: list[Sequence[Cell]] = [
        [
            _name(group), f"{group.recourse:,}", (cost(group.median), between(group.median_interval)),
            (cost(group.mean), between(group.mean_interval)), cost(group.quantile(0.1)), cost(group.quantile(0.9)),
        ]
        for group in (*audit.groups, audit.everybody)
    ]  # fmt: skip
    return _table("Costs of those who have recourse, with 95% intervals.", header, rows, total=bool(audit.groups))


def _name(group: Group) -> Cell:
    return (group.name, "" if group.compared else "few people")


def _comparisons(audit: Audit) -> str:
    if not audit.differences:
        return ""
    header = ("group", "compared", "in the group", "all others", "chance", "verdict")
    rows: list[Sequence[Cell]] = []
    for one in audit.differences:
        what, shown = ("share with recourse", percent) if one.what == "share" else ("median cost", cost)
        verdict = "a difference" if one.real else "noise"
        rows.append([one.group, what, shown(one.mine), shown(one.others), probability(one.chance), verdict])
    caption = "Each group against everybody else. Chance: the probability of such a difference by chance, corrected."
    return _table(caption, header, rows)


def _costs(audit: Audit) -> str:
    groups = [group for group in audit.groups if len(group.costs)] or [audit.everybody]
    if not len(groups[0].costs):
        return ""
    shown = sorted(groups, key=lambda group: -group.needing)
    unit = f"Cost is the {audit.distance_name} distance to the nearest row that is decided so."
    most = f" The {MOST_CURVES} largest groups." if len(groups) > MOST_CURVES else ""
    drawn = (*groups, audit.everybody)[-MOST_DRAWN - 1 :] if audit.groups else groups
    medians = _figure("Median cost of those who have recourse",
                      "Dot: median; whisker: its 95% interval; band: the middle 80% of people.",
                      costs_chart(drawn))  # fmt: skip
    rising = _figure("Who has recourse at no more than a cost",
                     f"Share of those who need it, over the cost.{most}", curves(shown))  # fmt: skip
    return f"<section><h2>What it costs</h2><p>{words(unit)}</p>{medians}{_cost_table(audit)}{rising}</section>"


def _changes(audit: Audit) -> str:
    everybody = audit.everybody
    if not everybody.details.moves:
        return ""
    rows = [
        (_named(one.move, audit), [("has", one.count / everybody.recourse)],
         f"{one.count:,} ({percent(one.count / everybody.recourse)})", None)
        for one in everybody.details.moves[:MOST_TOLD]
    ]  # fmt: skip
    alternative = "; ".join(f"{name}: {value}" for name, _, value, _ in rows)
    chart = _figure(
        "Most frequent changes", "Share of those with recourse whose nearest row has them.", bars(rows, alternative)
    )
    return f"<section><h2>What has to change</h2>{chart}{_moves(audit)}{_together(audit)}</section>"


def _moves(audit: Audit) -> str:
    """The most frequent changes, by group."""
    groups = [group for group in _listed_groups(audit) if group.recourse]
    if not groups:
        return ""
    counts = [{one.move: one.count for one in group.details.moves} for group in groups]
    rows: list[Sequence[Cell]] = [
        [_named(one.move, audit), *(percent(mine[one.move] / group.recourse) if one.move in mine else "-"
                             for mine, group in zip(counts, groups, strict=True))]
        for one in audit.everybody.details.moves[:MOST_TOLD]
    ]  # fmt: skip
    caption = "The same by group. A dash: not among the most frequent ones of the group."
    return _table(caption, ("change", *(printable(group.name, MOST_LETTERS) for group in groups)), rows)


def _together(audit: Audit) -> str:
    rows: list[Sequence[Cell]] = [
        [", ".join(map(audit.label, one.features)), f"{one.count:,} ({percent(one.count / audit.everybody.recourse)})",
         cost(float(one.costs[0])), cost(one.median)]
        for one in audit.everybody.details.together[:MOST_TOLD]
    ]  # fmt: skip
    return _table("Features that change together.", ("features", "people", "least cost", "median cost"), rows)


def _named(move: Move, audit: Audit) -> str:
    return f"{audit.label(move.feature)}: {move.direction}"


def _actions(audit: Audit) -> str:
    covers = [(group.name, group.details.cover) for group in (audit.everybody, *_listed_groups(audit))]
    tables = [_cover(name, cover, audit) for name, cover in covers if cover is not None]
    if not tables:
        return ""
    how = (
        "A few actions that help most people, chosen one after another. That an action helps somebody was checked with "
        "the model itself: the changed row keeps the schema and all constraints, and is decided so."
    )
    return f"<section><h2>What would help most people</h2><p>{how}</p>{''.join(tables)}</section>"


def _cover(name: str, cover: Cover, audit: Audit) -> str:
    of = "a sample of people who need recourse" if cover.sampled else "all who need recourse"
    ends = f", 95% interval {between(cover.interval, percent)}" if cover.interval is not None else ""
    share = f"Together they help {percent(cover.share)} ({cover.helped:,} of {cover.people:,}, {of}{ends})."
    rows: list[Sequence[Cell]] = [
        [action_text(action, audit), f"{action.helps:,} ({percent(action.helps / cover.people)})", f"{action.more:,}"]
        for action in cover.actions
    ]
    listed = _table(share, ("action", "helps", "helped by none above"), rows)
    return f'<div class="ifonly-keep"><h3>{words(capitalised(name))}</h3>{listed}</div>'


def _without(audit: Audit) -> str:
    everybody, parts = audit.everybody, []
    blame = everybody.details.blame[:MOST_TOLD]
    if everybody.without:
        parts.append(f"<h3>Provably without recourse: {everybody.without:,}</h3>")
        if blame:
            rows: list[Sequence[Cell]] = [[b.words, f"{b.count:,} ({percent(b.count / b.asked)})"] for b in blame]
            parts.append(
                _table(findings.blamed(everybody), ("what rules it out, alone or with others", "people"), rows)
            )
        else:
            parts.append('<p class="soft">What rules it out was not asked.</p>')
    if everybody.unknown:
        rows = [[why, f"{count:,}"] for why, count in everybody.details.stops[:MOST_TOLD]]
        parts.append(f"<h3>Left open: {everybody.unknown:,}</h3>")
        parts.append(_table("No row was found, and none was ruled out.", ("what stopped the search", "people"), rows))
    return f"<section><h2>Who has none, and who is left open</h2>{''.join(parts)}</section>" if parts else ""


def _query(where: Provenance) -> str:
    question = [("wanted decision", where.target), ("nearest in", where.distance), ("searched by", where.effort)]
    held = (
        bullets(where.constraints)
        if where.constraints
        else "<p>No constraint: everything in the schema may change.</p>"
    )
    marks = [("model", where.model, where.model_fingerprint), ("schema", "", where.schema_fingerprint),
             ("data", where.data, where.data_fingerprint)]  # fmt: skip
    prints = "".join(
        f"<dt>{words(name)}</dt><dd>{words(what)}{'<br>' if what else ''}<code>sha256 {words(mark)}</code></dd>"
        for name, what, mark in marks
        if mark or what
    )
    versions = ", ".join(f"{name} {version}" for name, version in where.versions)
    return (
        f"<section><h2>What was asked, of which model</h2>{facts(question)}<h3>Constraints</h3>{held}"
        f"<h3>Fingerprints</h3><dl>{prints}<dt>made</dt><dd>{words(where.made)}</dd>"
        f"<dt>versions</dt><dd>{words(versions)}</dd></dl></section>"
    )


def _method(audit: Audit) -> str:
    lines = [
        "Everybody counted as having recourse has a row that the schema and the constraints allow and that the model "
        "itself decides so. That somebody has none is proven, unless the list above says that it is open.",
        "Intervals hold with 95%. Shares: Clopper and Pearson, exact. Medians: order statistics, exact. Means: "
        f"bootstrap, {RESAMPLES:,} resamples from seed {audit.seed}; of more than {MOST_RESAMPLED:,} costs, normal.",
        f"Differences: each group with at least {audit.least:,} people who need recourse against everybody else; "
        "Fisher's exact test of the shares, Wilcoxon's rank sums of the costs; corrected by Holm's rule, so that where "
        "no group differs, all comparisons together find none with 95%. What does not pass is called noise.",
        "Costs are compared among those who have recourse. A group where fewer have it may look cheaper for that.",
        "An audit says what the model asks of people under these constraints. It says nothing about causes, nor "
        "whether a change is easy.",
    ]
    return f'<section><h2>How to read this</h2><div class="small">{bullets(lines)}</div></section>'


# ---------------------------------------------------------------------- pieces


def _listed_groups(audit: Audit) -> list[Group]:
    """The groups that are listed one by one: the largest of those that are compared."""
    largest = sorted((group for group in audit.groups if group.compared), key=lambda group: -group.needing)
    kept = {group.name for group in largest[:MOST_GROUPS]}
    return [group for group in audit.groups if group.name in kept]


def _by(audit: Audit) -> str:
    return f", by {words(audit.label(audit.by))}" if audit.by else ""


def _figure(title: str, aside: str, chart: str, key: str = "") -> str:
    caption = f'{words(title)} <span class="soft small">{words(aside)}</span>'
    return f"<figure><figcaption>{caption}</figcaption>{chart}{key}</figure>"


def _key(parts: Iterable[tuple[str, str]]) -> str:
    items = (
        f'<li><svg viewBox="0 0 28 12" width="28" height="12" aria-hidden="true" focusable="false">'
        f'<rect class="{kind}" x=".5" y=".5" width="27" height="11"/></svg>{words(what)}</li>'
        for kind, what in parts
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _table(caption: str, header: Sequence[str], rows: Sequence[Sequence[Cell]], *, total: bool = False) -> str:
    """A table of cells with asides; columns of numbers are aligned to the right."""
    columns = range(len(header))
    right = frozenset(j for j in columns if j and all(_is_number(row[j]) for row in rows))
    cells = [[_cell(cell) for cell in row] for row in rows]
    return table(header, cells, caption=caption, right=right, drawn=frozenset(columns), stacked=True, total=total)


def _cell(cell: Cell) -> str:
    main, aside = (cell, "") if isinstance(cell, str) else cell
    return words(main) + (f' <span class="soft">{words(aside)}</span>' if aside else "")


def _is_number(cell: Cell) -> bool:
    main = cell if isinstance(cell, str) else cell[0]
    return main[:1].isdigit() or main[:1] in "-<>"

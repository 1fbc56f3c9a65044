"""The findings of an audit in sentences: the same on a terminal, in the document and in a file."""

from __future__ import annotations

import math
from collections.abc import Callable

from ifonly.population.actions import Action
from ifonly.population.auditing import Audit
from ifonly.population.differences import Difference
from ifonly.population.group import Group
from ifonly.population.intervals import Interval
from ifonly.results.amounts import amount

MOST_NAMED = 8
"""Differences and small groups that are listed one by one."""


def overview(audit: Audit) -> list[str]:
    """Everybody, in two or three sentences."""
    all_of_them = audit.everybody
    if not all_of_them.needing:
        return [f"All {all_of_them.people:,} people are decided as asked already; nobody needs recourse."]
    sentences = [
        f"Of {people(all_of_them.people)}, {all_of_them.unneeded:,} are decided as asked already ({audit.target}). "
        f"Of the {all_of_them.needing:,} who are not, {counted(all_of_them.recourse, all_of_them)} have recourse: a "
        f"change that is allowed, and after which the model decides so.",
        f"{counted(all_of_them.without, all_of_them)} provably have none."
        if all_of_them.without
        else "Nobody is proven to have none.",
    ]
    if all_of_them.unknown:
        sentences.append(f"{counted(all_of_them.unknown, all_of_them)} are left open by a limit.")
    return sentences


def differences(audit: Audit) -> list[str]:
    """Which differences between groups are real, and which are noise."""
    if not audit.groups:
        return []
    found = sorted((one for one in audit.differences if one.real), key=lambda one: one.chance)
    real = [_difference(one, len(audit.differences)) for one in found[:MOST_NAMED]]
    if not audit.differences:
        return [f"No group is compared: that takes two with {audit.least:,} people or more who need recourse."]
    if not real:
        return [
            f"No group differs from the others by more than chance explains "
            f"({len(audit.differences):,} comparisons): what the groups differ by is noise."
        ]
    if len(found) > MOST_NAMED:
        real.append(f"{len(found) - MOST_NAMED:,} more differences are in the list of all comparisons.")
    rest = len(audit.differences) - len(found)
    if rest:
        real.append(f"The other {'comparison' if rest == 1 else f'{rest:,} comparisons'} found nothing beyond noise.")
    return real


def _difference(one: Difference, comparisons: int) -> str:
    chance = f"by chance alone, such a difference has probability {probability(one.chance)}"
    corrected = f"corrected for {comparisons:,} comparisons" if comparisons > 1 else "one comparison"
    if one.what == "share":
        more = "fewer" if one.mine < one.others else "more"
        finding = f"{more} have recourse, {percent(one.mine)} against {percent(one.others)} of all others"
    else:
        more = "less" if one.mine < one.others else "more" if one.mine > one.others else "not the same"
        finding = f"recourse costs {more}, a median of {cost(one.mine)} against {cost(one.others)} for all others"
    return f"{one.group}: {finding} ({chance}, {corrected})."


def notes(audit: Audit) -> list[str]:
    """What to bear in mind."""
    everybody, sentences = audit.everybody, []
    small = [group for group in audit.groups if not group.compared]
    if small:
        named = ", ".join(f"{group.name} ({group.needing:,})" for group in small[:MOST_NAMED])
        more = f" and {len(small) - MOST_NAMED:,} more" if len(small) > MOST_NAMED else ""
        sentences.append(f"Not compared, since fewer than {audit.least:,} of them need recourse: {named}{more}.")
    if everybody.unproven:
        sentences.append(f"{everybody.unproven:,} of the rows are not proven to be the nearest: costs may be lower.")
    if everybody.unknown:
        sentences.append(
            f"{everybody.unknown:,} are open: a limit was hit before a row was found or ruled out. Shares count them "
            f"as people without recourse."
        )
    if audit.failed:
        sentences.append(f"{audit.failed:,} rows could not be read or answered and are left out.")
    if audit.contradictions:
        sentences.append(
            f"{audit.contradictions:,} times two things did not agree that must: this is a bug in ifonly, please "
            f"report it. The people concerned are left out, or it is not said what rules recourse out for them."
        )
    return sentences


def blamed(group: Group) -> str:
    """Of how many people it is known what rules recourse out."""
    asked = group.details.blame[0].asked if group.details.blame else 0
    if asked == group.without:
        return f"For each of the {asked:,} people without recourse, constraints that together rule it out are known."
    return (
        f"Of {asked:,} of the {group.without:,} people without recourse, drawn by chance, it was asked which "
        f"constraints together rule it out."
    )


def counted(count: int, group: Group) -> str:
    """So many, and which part of those who need recourse."""
    return f"{count:,} ({percent(count / group.needing)})" if group.needing else f"{count:,}"


def action_text(action: Action, audit: Audit) -> str:
    """An action under the names and in the units that people know."""
    return " and ".join(
        f"{audit.label(step.feature)} -> {amount(step.to, unit)}" if step.by is None
        else f"{audit.label(step.feature)} {'+' if step.by > 0 else '-'}{amount(abs(step.by), unit)}"
        for step, unit in ((step, audit.words.get(step.feature, ("", ""))[1]) for step in action.steps)
    )  # fmt: skip


def people(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"


def percent(part: float) -> str:
    """A share with one digit after the point; 0% and 100% only of none and of all."""
    if part in (0.0, 1.0):
        return f"{part:.0%}"
    return "<0.1%" if part < 0.0005 else ">99.9%" if part >= 0.9995 else f"{part:.1%}"


def cost(value: float) -> str:
    """A cost with three digits; a dash where there is none."""
    return f"{value:.3g}" if math.isfinite(value) else "-"


def probability(chance: float) -> str:
    return "below 0.0001" if chance < 1e-4 else f"{chance:.2g}"


def between(interval: Interval | None, shown: Callable[[float], str] = cost) -> str:
    """The ends of an interval; a dash where there is none."""
    return "-" if interval is None else f"{shown(interval[0])} to {shown(interval[1])}"

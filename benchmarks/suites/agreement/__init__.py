"""Do the paper's methods find what they should? Against reference optima, and against one another.

    reference   `tests/data`: networks, people and optimal distances that another solver found
    small       COMPAS, networks of few neurons, against the enumeration of all 936 rows
    random      random mixed questions, every method against every other (the questions of `tests/oracles`)
    rules       the same with random rules between features; in finite spaces the enumerator is asked too
    bounds      sampled rows inside box and budget: no pre-activation may lie outside its bounds

Every answer is a CSV record, time-outs included; a run adds only what is missing. Each line printed is one cell.
"""

from benchmarks.suites.agreement.command import command as command

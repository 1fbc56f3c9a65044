"""Other libraries on the same networks and rows, each in an environment of its own with pinned versions.

environments   makes them under benchmarks/cache/env-*, from the lists in locks/
handover       what a peer is given: plain numpy weights over numbers and one-hot options, training rows
inside/        what runs inside a peer's environment: no ifonly there, only numpy and the peer
talk           one process per peer and network; a row goes in, rows come out, and who takes too long is ended
race           who is asked about what; every row is a record
"""

"""The attacker: hostile questions, files and certificates, and oracles that share no code with what they judge.

A *case* is plain JSON: everything about one attack, so that it can be made smaller, kept in a file and replayed.
A *kind* makes cases from a source of chance and runs them; `run` says what happened, and everything that is false
about it. Kinds know nothing of one another, and nothing here is shared with the tests' own generators.
"""

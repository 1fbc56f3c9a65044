"""The checker's leaves in floating point: the same steps, so fast that a whole tree costs about what searching it did.

`walk` follows the search's records from the root and closes every box that it can as the checker would, with the
checker's own rules (docs/certificate.md): cheapest corner, ball, hidden bounds, planes, multipliers. A leaf that is
closed here is closed in exact arithmetic too; what is too close to call stays open, for exact arithmetic to decide.
`answer` is the one step of it that exact arithmetic needs for its own proposals.
"""

"""A look at what one has: does the data fit schema and rules, how does the score go from a person to an answer"""

from ifonly.looking.doubts import doubts
from ifonly.looking.paths import ScorePath, score_path

__all__ = ["ScorePath", "doubts", "score_path"]

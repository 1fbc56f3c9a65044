"""One person's question, put to a method as often as it takes: alternatives, either-or conditions, several answers,
reasons. All of it works on points, below the door."""

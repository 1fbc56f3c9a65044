"""Many people: tables as streams, runs on processes and clusters that can be resumed, what an audit says of a group."""

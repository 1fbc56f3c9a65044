"""Many people: chunks on several threads, and what an audit says of a group."""

"""From what was read to what is shown: pure functions, frozen dataclasses, no store."""

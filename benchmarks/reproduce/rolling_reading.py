"""What the rolling tables say, in words: written after the numbers of ``rolling.md``."""

READING = """
## Reading
"""

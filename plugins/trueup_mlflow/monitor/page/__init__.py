"""What is shown of a monitored version."""

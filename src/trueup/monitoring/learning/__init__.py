"""What realized batches, and the reference's own periods, teach about later estimates."""

"""What goes into a store: pure items, figures, and the one writer."""

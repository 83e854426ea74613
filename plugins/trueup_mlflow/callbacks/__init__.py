"""Callbacks for training loops that keep their predictions to themselves."""

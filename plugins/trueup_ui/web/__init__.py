"""Requests and answers: the routes, the server, MLflow's app and the static report."""

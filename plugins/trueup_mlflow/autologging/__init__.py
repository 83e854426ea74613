"""How autologging recognises a logged number and adds what belongs beside it.

A hook on each metric function (``sklearn_hook``, ``torch_hook``) keeps what the function was called
with under the value that it returned (``recent``). When exactly that value is logged, the hook on
the MLflow client (``client_hook``) evaluates it and puts the twins into the same request.
"""

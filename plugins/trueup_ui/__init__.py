"""The page: pipelines over seeds, comparisons, studies, monitored models and fields in a browser.

``read`` takes from a store what a page needs, ``view`` turns it into what is shown (pure), ``web``
answers requests, ``templates`` and ``static`` are what the browser gets. Nothing is written to the
store.
"""

"""Short texts and HTML for people who look at objects in a console or a notebook.

In: objects of the model. Out: text. Nothing else uses it.
"""

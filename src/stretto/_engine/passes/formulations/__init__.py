"""Choose the form in which a mapped operation is computed."""

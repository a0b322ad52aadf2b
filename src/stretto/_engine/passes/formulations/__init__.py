"""How a mapped operation is computed: the forms that there are, and which is chosen."""

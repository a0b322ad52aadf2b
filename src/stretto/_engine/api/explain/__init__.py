"""Reports of what is compiled, why, what it keeps, and the time that it takes."""

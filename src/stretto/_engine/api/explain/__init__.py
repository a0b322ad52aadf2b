"""What ``st.explain`` says: read ``explain`` first, then ``formulations``, ``memory``, ``kept``."""

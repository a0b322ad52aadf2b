"""Keep the derivatives that a PyTorch module gives by itself."""

"""Layer 5: from programs to StableHLO text. It knows no primitive by name."""

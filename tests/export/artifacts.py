"""Artifacts by way of a file."""

import stretto as st


def again(artifact, folder):
    """What a file that the artifact is saved to holds."""
    path = str(folder / "artifact.stretto")
    artifact.save(path)
    return st.export.load(path)

"""Parts of arrays read and updated at places given by numbers. Begin with ``gather_scatter``."""

"""hopline: which TCP settings work best over your multi-hop wireless network?"""

from hopline._hopline import __version__

__all__ = ["__version__"]

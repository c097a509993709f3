"""What bounds a quantized Mixture-of-Experts kernel on this CPU, and did the last change help."""

from moe_prof.errors import MoeProfError

__version__ = "0.1.0"
__all__ = ["MoeProfError", "__version__"]

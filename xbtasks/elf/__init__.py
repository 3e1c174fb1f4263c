"""An ELF file as the loader sees it, from its bytes."""

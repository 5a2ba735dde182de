"""What may come next in a Python file: syntax, scope and token healing as constraints over tokens.

Knows tree-sitter and llguidance; never imports torch. Offsets are UTF-8 bytes, except that the two pure
functions exported here take `str` with code-point offsets as well.
"""

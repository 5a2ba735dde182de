"""The engine: guided speculative decoding with dynamic draft trees.

Knows torch and transformers; never imports pygls. Importing this package is cheap: nothing heavy is loaded
until a name that needs it is used.
"""

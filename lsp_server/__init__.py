"""The protocol and process edge: knows pygls and lsprotocol, never imports torch or tree-sitter itself."""

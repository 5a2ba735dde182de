"""The drafters: whatever proposes tokens. One file each, one Protocol."""

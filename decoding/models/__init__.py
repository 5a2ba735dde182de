"""Target models: where their weights come from and how they run."""

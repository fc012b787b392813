"""Real models on a GPU, Inductor and Bridge side by side: `bridge bench`, `python -m bridge.bench`."""

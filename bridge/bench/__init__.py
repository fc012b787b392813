"""For `bridge bench`, `python -m bridge.bench`: real models on a GPU, Inductor and Bridge side by side."""

"""Patterns of a public corpus, Inductor and Bridge side by side: `bridge bench --corpus FOLDER`.

The corpus (eellison/better-benchmark) has no licence, so nothing of it is here: it is read, and run, where it lies.
"""

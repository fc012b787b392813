"""Compare Bridge, in programs that the project did not design, with Inductor and eager, from generators of others.

`python -m torture --help`, from this folder's parent. A generator is a module with two functions (see `generator.py`).
"""

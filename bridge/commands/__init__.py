"""Hold the subcommands of `bridge`: each module here is one, and has `NAME`, `register(parser)` and `run(arguments)`.

Its docstring is what `bridge --help` says of it.  A new command is a new module; nothing else has to know of it.
"""

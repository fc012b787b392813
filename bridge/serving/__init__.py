"""Bridge in servers of language models: what it takes to be asked for there, and to be seen.

Importing a file of this room loads no server.  vllm.py alone knows vLLM's own API, sglang.py that of SGLang.
"""

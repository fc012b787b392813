"""Time real models on a GPU, Inductor and Bridge side by side: the same as `bridge bench`.

python benchmarks/models.py --out results/
python benchmarks/models.py --only llama swin --modes decode vision --budget-seconds 300
python benchmarks/models.py --compare results/models.json
"""

from __future__ import annotations

import sys

from bridge.bench.command import main

if __name__ == "__main__":
    sys.exit(main())

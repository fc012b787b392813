"""A decoder of `transformers` with random weights: what Bridge finds in a whole model, and that it computes the same.

Nothing is downloaded. Needs `pip install transformers`.
"""

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

import bridge


def main():
    torch.manual_seed(0)
    sizes = {"hidden_size": 256, "intermediate_size": 512, "head_dim": 64, "vocab_size": 512}
    heads = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    model = Qwen3ForCausalLM(Qwen3Config(**sizes, **heads)).eval()
    tokens = torch.randint(0, 512, (1, 32))

    def logits(tokens):
        return model(tokens, use_cache=False).logits

    print(bridge.explain(logits, tokens, registers=False))
    with torch.no_grad(), bridge.enabled() as report:
        result = torch.compile(logits)(tokens)
        torch.testing.assert_close(result, logits(tokens), rtol=1e-3, atol=1e-3)
    print(report)


if __name__ == "__main__":
    main()

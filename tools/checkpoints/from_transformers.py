"""Directories that Trainer saves: weights and optimizer in files of their own."""

import pathlib
from typing import Callable

import torch
import transformers
from safetensors.torch import load_file
from sample import Sample, read, vary
from torch import Tensor, nn
from transformers.models.bert.modeling_bert import BertSelfAttention
from transformers.models.gpt2.modeling_gpt2 import GPT2Attention
from transformers.pytorch_utils import Conv1D


def bert() -> nn.Module:
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, num_labels=3,
        max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        attn_implementation="eager")  # fmt: skip
    return vary(transformers.BertForSequenceClassification(config))


def gpt2() -> nn.Module:
    config = transformers.GPT2Config(
        vocab_size=50, n_positions=16, n_embd=32, n_layer=2, n_head=4, n_inner=48, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, attn_implementation="eager", use_cache=False)  # fmt: skip
    return vary(transformers.GPT2LMHeadModel(config))


class Logits(nn.Module):
    """The model, traced as a function of its tokens."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Tensor:
        return self.model(input_ids=tokens, return_dict=False)[0]


def tokens(rows: int) -> Tensor:
    return torch.randint(0, 50, (rows, 8), generator=torch.Generator().manual_seed(3))


def resize(module: nn.Module) -> None:
    for part in module.modules():
        if isinstance(part, Conv1D):
            part.nx, part.nf = part.weight.shape
        if isinstance(part, BertSelfAttention):
            part.all_head_size = part.query.out_features
            part.attention_head_size = part.all_head_size // part.num_attention_heads
    for part in module.modules():
        if isinstance(part, GPT2Attention):
            part.split_size = part.c_attn.nf // 3
            part.head_dim = part.split_size // part.num_heads


def sample(
    folder: pathlib.Path, layout: str, make: Callable[[], nn.Module], labels: Callable[[Tensor], Tensor]
) -> Sample:
    rows = [{"input_ids": row, "labels": labels(row)} for row in tokens(4)]
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "run"), max_steps=2, save_steps=2, per_device_train_batch_size=2, use_cpu=True,
        report_to=[], disable_tqdm=True, weight_decay=0.1, learning_rate=1e-3,
        lr_scheduler_type="constant", logging_strategy="no")  # fmt: skip
    model = make()
    transformers.Trainer(model=model, args=arguments, train_dataset=rows).train()
    tied = {name: other for name, other in (getattr(model, "_tied_weights_keys", None) or {}).items()}

    def states(at):
        state = load_file(at / "model.safetensors")
        state.update({name: state[other] for name, other in tied.items()})
        return [{f"model.{name}": tensor for name, tensor in state.items()}]

    def optimizers(module, at):
        made = transformers.Trainer(model=module.model, args=arguments, train_dataset=rows).create_optimizer()
        made.load_state_dict(read(at / "optimizer.pt"))
        return [made]

    def loss(module: nn.Module) -> Tensor:
        inputs = tokens(2)
        return module.model(input_ids=inputs, labels=torch.stack([labels(row) for row in inputs])).loss

    return Sample(
        "transformers", layout, folder / "run" / "checkpoint-2", Logits(model), (tokens(2),), lambda: Logits(make()),
        states, optimizers, loss, resize=resize)  # fmt: skip


def samples():
    yield "transformers", lambda at: sample(at, "BERT, directory of Trainer", bert, lambda row: row[0] % 3)
    yield "transformers_tied", lambda at: sample(
        at, "GPT-2 with tied head, directory of Trainer", gpt2, lambda row: row
    )

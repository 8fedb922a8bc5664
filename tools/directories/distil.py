"""One epoch of distillation with transformers, and the same class trained from nothing for as many steps."""

import copy
import sys
import pathlib

import torch
from torch.nn import functional

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from parsimony.texts import Batch, Losses, read_texts  # noqa: E402

TOKENS = 2048  # of a step
RATES = (1e-3, 3e-3, 1e-2)  # the best one counts, for both


def distilled(original, small, texts, samples):
    """Losses on the texts that are measured on: after an epoch against the original, and from nothing."""
    from transformers import AutoModelForCausalLM

    read = read_texts(f"text:{texts}", original, samples)
    teacher = AutoModelForCausalLM.from_pretrained(original, dtype=torch.float32).eval()
    steps = [one for batch in read.calibration for one in parts(batch)]
    start = AutoModelForCausalLM.from_pretrained(small, dtype=torch.float32)
    new = lambda: type(start)(copy.deepcopy(start.config))
    with_teacher = [trained(copy.deepcopy(start), teacher, steps, rate) for rate in RATES]
    from_nothing = [trained(new(), None, steps, rate) for rate in RATES]
    best = lambda models: min(loss(model, read.measured) for model in models)
    return {"distilled": best(with_teacher), "from nothing": best(from_nothing), "steps": len(steps)}


def parts(batch):
    count = max(1, TOKENS // batch.tokens.shape[1])
    for first in range(0, len(batch.tokens), count):
        yield Batch(batch.tokens[first : first + count], batch.mask[first : first + count])


def trained(model, teacher, batches, rate):
    torch.manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=len(batches), pct_start=0.1)
    model.train()
    for number in torch.randperm(len(batches)).tolist():
        tokens, mask = batches[number]
        logits = model(tokens, attention_mask=mask).logits[:, :-1][mask[:, 1:] == 1]
        if teacher is None:
            error = functional.cross_entropy(logits, tokens[:, 1:][mask[:, 1:] == 1])
        else:
            with torch.no_grad():
                target = teacher(tokens, attention_mask=mask).logits[:, :-1][mask[:, 1:] == 1]
            error = functional.kl_div(logits.log_softmax(-1), target.softmax(-1), reduction="batchmean")
        optimizer.zero_grad()
        error.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval()


def loss(model, batches):
    found = Losses()
    with torch.no_grad():
        for number, batch in enumerate(batches):
            found.add(number, batch, model(batch.tokens, attention_mask=batch.mask).logits)
    return found.value()

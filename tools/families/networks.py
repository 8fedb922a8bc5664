"""The networks of timm and transformers that are measured: which, how small, and what they are called with."""

import importlib.metadata

import torch
from torch.utils._pytree import tree_leaves

from architectures.weights import randomised

LARGEST = 100_000_000  # parameters: what is larger did not become small by its configuration
# What each number of a configuration becomes that has one of these names.
SIZES = {
    64: "hidden_size d_model n_embd dim embedding_size projection_dim hidden_dim emb_dim decoder_hidden_size d_embed",
    128: "intermediate_size ffn_dim d_ff encoder_ffn_dim decoder_ffn_dim n_inner moe_intermediate_size "
    "shared_expert_intermediate_size ffn_hidden_size mlp_dim feed_forward_hidden_size dff",
    2: "num_hidden_layers num_layers n_layer n_layers encoder_layers decoder_layers num_encoder_layers "
    "num_decoder_layers num_key_value_heads num_experts_per_tok moe_topk",
    4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads "
    "num_local_experts num_experts n_routed_experts moe_num_experts",
    100: "vocab_size decoder_vocab_size",
    16: "head_dim d_kv num_mel_bins kv_channels v_head_dim qk_nope_head_dim kv_lora_rank",
    8: "patch_size qk_rope_head_dim rotary_dim",
    32: "image_size q_lora_rank lora_rank",
    96: "max_position_embeddings n_positions n_ctx max_source_positions max_target_positions max_seq_len",
    1: "n_shared_experts n_group topk_group first_k_dense_replace",
}
SMALL = {name: size for size, names in SIZES.items() for name in names.split()}
OPEN = ("num_key_value_heads", "head_dim", "intermediate_size")  # set where the configuration leaves them open, too
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
# The head that a class is taken with: the first that transformers has for a kind of model.
HEADS = "CAUSAL_LM MASKED_LM SEQ_TO_SEQ_CAUSAL_LM IMAGE_CLASSIFICATION AUDIO_CLASSIFICATION SPEECH_SEQ_2_SEQ".split()


def versions():
    """The versions of those that are installed."""
    installed = {one.metadata["Name"]: one.version for one in importlib.metadata.distributions()}
    return {name: installed[name] for name in ("torch", "timm", "transformers") if name in installed}


def families_of_timm():
    """The network of fewest parameters of each of timm's modules."""
    import timm

    def size(name):
        with torch.device("meta"):
            return sum(parameter.numel() for parameter in timm.create_model(name).parameters())

    def smallest(names):
        sizes = {}
        for name in names:
            try:
                sizes[name] = size(name)
            except Exception:  # some are built from values, which meta has none of
                continue
        return min(sizes, key=sizes.get, default=names[0])

    listed = (timm.list_models(module=module) for module in sorted(timm.list_modules()))
    return [smallest(names) for names in listed if names]


def families_of_transformers():
    """One class for each kind of model."""
    from transformers.models.auto import modeling_auto as auto

    found = {}
    for head in HEADS:
        for kind, names in getattr(auto, f"MODEL_FOR_{head}_MAPPING_NAMES").items():
            found.setdefault(kind, names if isinstance(names, str) else names[0])
    return sorted(set(found.values()))


def of_timm(name):
    """A network for classification and an image."""
    import timm

    model = timm.create_model(name)
    size = model.default_cfg.get("input_size", (3, 224, 224))
    return model, (torch.rand(2, *size) - 0.5,)


def shrink(config):
    """Sets the sizes of a configuration, and of those in it."""
    kind = type(config)
    pyramid = hasattr(config, "depths")  # whose windows and strides need the image that they were made for
    for name, value in list(vars(config).items()):
        if isinstance(getattr(kind, name, None), property) or (pyramid and name in ("image_size", "patch_size")):
            continue
        if hasattr(value, "to_dict"):
            shrink(value)
        elif name in SMALL and (type(value) is int or (value is None and name in OPEN)):
            setattr(config, name, SMALL[name])
        elif name in TOKENS:
            setattr(config, name, TOKENS[name])
    if hasattr(config, "qk_rope_head_dim"):
        config.head_dim, config.num_key_value_heads = config.qk_rope_head_dim, config.num_attention_heads
    layers = getattr(config, "num_hidden_layers", 2)
    for name, value in list(vars(config).items()):
        if isinstance(value, list) and name.endswith(("layer_types", "layers_block_type", "mlp_layer_types")):
            setattr(config, name, (list(dict.fromkeys(value)) * layers)[:layers])
    return config


def of_transformers(name):
    """A small network of that class and its inputs, by name."""
    import transformers
    from transformers.exporters.exporter_dynamo import register_cache_pytrees_for_model

    kind = getattr(transformers, name)
    config = shrink(kind.config_class())
    if hasattr(config, "attention_types"):
        config.attention_types = [[["global", "local"], 1]]
        config.attention_layers = ["global", "local"]
    if hasattr(config, "max_source_positions"):
        config.max_source_positions = 20 if hasattr(config, "num_mel_bins") else SMALL["max_source_positions"]
    model = kind(config)
    register_cache_pytrees_for_model(model)
    tokens = torch.randint(3, 100, (2, 8))
    main = model.main_input_name
    inputs = {
        "input_ids": lambda: tokens,
        "pixel_values": lambda: torch.rand(2, getattr(config, "num_channels", 3), *[image_size(config)] * 2),
        "input_features": lambda: torch.rand(2, getattr(config, "num_mel_bins", 80), 40),
        "input_values": lambda: torch.rand(2, 4000),
    }
    given = {main: inputs[main]()}
    if config.is_encoder_decoder:
        given["decoder_input_ids"] = tokens
    return model, given


def image_size(config):
    size = getattr(config, "image_size", 32)
    return size if isinstance(size, int) else size[0]


def network(name):
    """The network and its inputs, the same whenever they are made; all weights tell their channels apart."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, inputs = (of_timm if name.islower() else of_transformers)(name)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if parameters > LARGEST:
        raise ValueError(f"{parameters:,} parameters")
    return randomised(model.eval()), inputs


def run(model, inputs):
    return model(**inputs) if isinstance(inputs, dict) else model(*inputs)


def called(results):
    """All tensors of what a run gives, in order."""
    results = dict(results) if isinstance(results, dict) else results
    return [x for x in tree_leaves(results) if isinstance(x, torch.Tensor)]

"""Small random models of many architectures, from configurations: nothing is downloaded."""

from functools import cache

import torch
import transformers

WIDTH, VOCAB, LENGTH = 16, 60, 64
LLAMA = {
    "hidden_size": WIDTH,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "max_position_embeddings": LENGTH,
}
MOE = {"num_local_experts": 2, "num_experts_per_tok": 1, **LLAMA}
BERT = {
    "hidden_size": WIDTH,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": LENGTH,
}
GPT2 = {"n_embd": WIDTH, "n_layer": 2, "n_head": 2, "n_positions": LENGTH}
BART = {
    "d_model": WIDTH,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": LENGTH,
}
T5 = {
    "d_model": WIDTH,
    "d_kv": 8,
    "d_ff": 24,
    "num_layers": 2,
    "num_heads": 2,
    "decoder_start_token_id": 0,
}

# name -> (settings of the configuration, the name of a layer in the base model)
CAUSAL = {
    "Llama": (LLAMA, "layers.0"),
    "Mistral": (LLAMA, "layers.0"),
    "Mixtral": (MOE, "layers.0"),
    "Qwen2": (LLAMA, "layers.0"),
    "Qwen3": (LLAMA, "layers.0"),
    "Phi3": (LLAMA, "layers.0"),
    "Gemma": (LLAMA, "layers.0"),
    "Gemma2": (LLAMA, "layers.0"),
    "Olmo2": (LLAMA, "layers.0"),
    "GptOss": ({**MOE, "sliding_window": 8}, "layers.0"),
    "GPT2": (GPT2, "h.0"),
    "GPTNeoX": (BERT, "layers.0"),
    "OPT": (
        {
            "hidden_size": WIDTH,
            "word_embed_proj_dim": WIDTH,
            "ffn_dim": 24,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "max_position_embeddings": LENGTH,
        },
        "decoder.layers.0",
    ),
    "Bloom": ({"hidden_size": WIDTH, "n_layer": 2, "n_head": 2}, "h.0"),
    "Gemma3Text": ({**LLAMA, "sliding_window": 8}, "layers.0"),
    "Olmo3": (
        {**LLAMA, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]},
        "layers.0",
    ),
    "Phi": (BERT, "layers.0"),
    "Cohere": (LLAMA, "layers.0"),
    "Granite": (LLAMA, "layers.0"),
    "Qwen3Moe": (
        {**LLAMA, "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16},
        "layers.0",
    ),
    "DeepseekV3": (
        {
            **{key: value for key, value in LLAMA.items() if key != "head_dim"},
            "num_key_value_heads": 2,
            "moe_intermediate_size": 8,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "n_group": 1,
            "topk_group": 1,
            "kv_lora_rank": 8,
            "q_lora_rank": 8,
            "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 4,
            "v_head_dim": 8,
            "first_k_dense_replace": 1,
        },
        "layers.0",
    ),
    "Falcon": (
        {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2},
        "h.0",
    ),
    "GPTJ": (
        {"n_embd": WIDTH, "n_layer": 2, "n_head": 2, "rotary_dim": 4, "n_positions": LENGTH},
        "h.0",
    ),
    "Mpt": (
        {"d_model": WIDTH, "n_layers": 2, "n_heads": 2, "max_seq_len": LENGTH, "use_cache": True},
        "blocks.0",
    ),
    "Jamba": (
        {
            "hidden_size": WIDTH,
            "intermediate_size": 24,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "num_experts": 2,
            "num_experts_per_tok": 1,
            "mamba_d_state": 4,
            "mamba_dt_rank": 2,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "expert_layer_period": 2,
            "expert_layer_offset": 1,
            "use_mamba_kernels": False,
        },
        "layers.0",
    ),
    "Mamba": (
        {"hidden_size": WIDTH, "num_hidden_layers": 2, "state_size": 4, "time_step_rank": 2},
        "layers.0",
    ),
}
ENCODERS = {
    "Bert": (BERT, "encoder.layer.0"),
    "Roberta": (BERT, "encoder.layer.0"),
    "Electra": ({**BERT, "embedding_size": WIDTH}, "encoder.layer.0"),
    "DistilBert": (
        {"dim": WIDTH, "n_layers": 2, "n_heads": 2, "hidden_dim": 24},
        "transformer.layer.0",
    ),
    "Albert": (
        {**BERT, "embedding_size": WIDTH},
        "encoder.albert_layer_groups.0.albert_layers.0",
    ),
    "ModernBert": (BERT, "layers.0"),
    "DebertaV2": (
        {**BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8},
        "encoder.layer.0",
    ),
    "MPNet": (BERT, "encoder.layer.0"),
    "NomicBert": (BERT, "layers.0"),
}
BOTH = {  # the names of an encoder's and of a decoder's layer
    "T5": (T5, "encoder.block.0", "decoder.block.0"),
    "Bart": (BART, "encoder.layers.0", "decoder.layers.0"),
}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def config(name, settings):
    made = getattr(transformers, f"{name}Config")
    return made(vocab_size=VOCAB, **{**SPECIAL, **settings})


@cache
def causal(name):
    """A model with a head that generates; tests must leave it as it is."""
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config(name, CAUSAL[name][0])).eval()
    with torch.no_grad():  # fresh weights are so small that layers add next to nothing
        for weight in model.parameters():
            weight.mul_(4 if weight.ndim > 1 and weight.std() < 0.05 else 1)
    return model


@cache
def encoder(name):
    """A model that reads texts; tests must leave it as it is."""
    torch.manual_seed(0)
    return transformers.AutoModel.from_config(config(name, ENCODERS[name][0])).eval()


@cache
def encoder_decoder(name):
    """A model that reads one text and writes another; tests must leave it as it is."""
    torch.manual_seed(0)
    made = config(name, BOTH[name][0])
    return transformers.AutoModelForSeq2SeqLM.from_config(made).eval()


@cache
def whisper():
    torch.manual_seed(0)
    made = transformers.WhisperConfig(
        **BART | SPECIAL,
        vocab_size=VOCAB,
        num_mel_bins=4,
        max_source_positions=20,
        max_target_positions=LENGTH,
        decoder_start_token_id=1,
    )
    return transformers.WhisperForConditionalGeneration(made).eval()


@cache
def clip():
    """Texts beside images of 17 positions."""
    torch.manual_seed(0)
    made = transformers.CLIPConfig(
        text_config={**BERT, "vocab_size": VOCAB},
        vision_config={**BERT, "image_size": 16, "patch_size": 4},
        projection_dim=8,
    )
    return transformers.CLIPModel(made).eval()


@cache
def vit():
    torch.manual_seed(0)
    made = transformers.ViTConfig(**BERT | {"image_size": 16, "patch_size": 4})
    return transformers.ViTModel(made).eval()


@cache
def wav2vec2():
    torch.manual_seed(0)
    made = transformers.Wav2Vec2Config(
        **BERT | SPECIAL,
        conv_dim=(8, 8),
        conv_kernel=(4, 4),
        conv_stride=(2, 2),
        num_feat_extract_layers=2,
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
        feat_extract_norm="layer",
    )
    return transformers.Wav2Vec2Model(made).eval()


@cache
def llava():
    torch.manual_seed(0)
    made = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(**BERT | {"image_size": 16, "patch_size": 4}),
        text_config=transformers.LlamaConfig(vocab_size=VOCAB, **LLAMA),
        image_token_id=5,
        vision_feature_layer=-1,
    )
    return transformers.LlavaForConditionalGeneration(made).eval()


def left_padded(texts=3, length=9):
    """Token numbers and a mask; text i has i padding tokens in front."""
    ids = torch.randint(3, VOCAB, (texts, length), generator=torch.manual_seed(1))
    mask = (torch.arange(length) >= torch.arange(texts)[:, None]).long()
    return {"input_ids": ids.masked_fill(mask == 0, 0), "attention_mask": mask}

"""A Llama-shaped model of GPT-2 124M's size with random weights, as a Hugging Face directory and as a GGUF file."""
import json
import pathlib
import struct

import numpy as np

CONFIG = dict(model_type='llama', architectures=['LlamaForCausalLM'], vocab_size=50257, hidden_size=768, intermediate_size=2048,
              num_hidden_layers=12, num_attention_heads=12, num_key_value_heads=12, head_dim=64, max_position_embeddings=2048,
              rms_norm_eps=1e-5, rope_theta=10000.0, hidden_act='silu', tie_word_embeddings=True, bos_token_id=1,
              eos_token_id=2)


def shapes(c=CONFIG):
    """(name in Hugging Face's files, name in GGUF, shape)"""
    d, f = c['hidden_size'], c['intermediate_size']
    found = [('model.embed_tokens.weight', 'token_embd.weight', (c['vocab_size'], d)),
             ('model.norm.weight', 'output_norm.weight', (d,))]
    for i in range(c['num_hidden_layers']):
        own, other = f'model.layers.{i}.', f'blk.{i}.'
        for name, gguf, shape in [
                ('self_attn.q_proj', 'attn_q', (d, d)), ('self_attn.k_proj', 'attn_k', (d, d)), ('self_attn.v_proj', 'attn_v', (d, d)),
                ('self_attn.o_proj', 'attn_output', (d, d)), ('mlp.gate_proj', 'ffn_gate', (f, d)), ('mlp.up_proj', 'ffn_up', (f, d)),
                ('mlp.down_proj', 'ffn_down', (d, f)), ('input_layernorm', 'attn_norm', (d,)),
                ('post_attention_layernorm', 'ffn_norm', (d,))]:
            found.append((own + name + '.weight', other + gguf + '.weight', shape))
    return found


def values():
    rng = np.random.default_rng(1)
    for name, gguf, shape in shapes():
        one = len(shape) == 1
        yield name, gguf, (np.ones(shape, np.float32) if one else
                           rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02))


def bf16_bits(x):
    """To nearest, ties to even."""
    bits = x.view(np.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def write_directory(folder, dtype):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'config.json').write_text(json.dumps({**CONFIG, 'torch_dtype': {'f32': 'float32', 'bf16': 'bfloat16'}[dtype]}))
    header, blobs, at = {}, [], 0
    for name, _, x in values():
        data = (bf16_bits(x) if dtype == 'bf16' else x).tobytes()
        header[name] = dict(dtype={'f32': 'F32', 'bf16': 'BF16'}[dtype], shape=list(x.shape), data_offsets=[at, at + len(data)])
        blobs.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(folder / 'model.safetensors', 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text)
        for data in blobs:
            file.write(data)


def write_gguf(path, dtype):
    """dtype: f32, bf16, or q8: Q8_0, made of the numbers that bf16 has."""
    import gguf
    c = CONFIG
    writer = gguf.GGUFWriter(path, 'llama')
    writer.add_block_count(c['num_hidden_layers'])
    writer.add_context_length(c['max_position_embeddings'])
    writer.add_embedding_length(c['hidden_size'])
    writer.add_feed_forward_length(c['intermediate_size'])
    writer.add_head_count(c['num_attention_heads'])
    writer.add_head_count_kv(c['num_key_value_heads'])
    writer.add_layer_norm_rms_eps(c['rms_norm_eps'])
    writer.add_rope_freq_base(c['rope_theta'])
    writer.add_vocab_size(c['vocab_size'])
    writer.add_tokenizer_model('gpt2')
    writer.add_token_list([f't{i}' for i in range(c['vocab_size'])])
    writer.add_token_merges(['t 1'])
    kinds = gguf.GGMLQuantizationType
    for _, name, x in values():
        if dtype == 'bf16' and x.ndim == 2:
            writer.add_tensor(name, bf16_bits(x).view(np.uint8), raw_dtype=kinds.BF16)
        elif dtype == 'q8' and x.ndim == 2:
            held = (bf16_bits(x).astype(np.uint32) << 16).view(np.float32)
            writer.add_tensor(name, gguf.quants.quantize(held, kinds.Q8_0), raw_dtype=kinds.Q8_0)
        else:
            writer.add_tensor(name, x)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

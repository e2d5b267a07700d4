"""Fine-tuning by PyTorch, transformers and PEFT, as a process that waits for commands: bench/run_finetune.py starts it.

peft_worker.py DIR IDS BATCH RANK RATE THREADS PRECISION
DIR is a model's directory, IDS a .npy of token ids [rows, tokens]; RANK 0 trains all weights, else a LoRA adapter on all linear
layers of the blocks; PRECISION f32, or bf16 for autocast. "run N" runs N steps and answers {"seconds": [...], "losses": [...]}.
"""
import json
import sys
import time

import numpy as np
import torch
import transformers

folder, ids, batch, rank, rate, threads, precision = sys.argv[1:]
torch.set_num_threads(int(threads))
model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation='sdpa', dtype=torch.float32)
if int(rank):
    import peft
    # GPT-2's Conv1D stores its weight as [in, out].
    model = peft.get_peft_model(model, peft.LoraConfig(r=int(rank), lora_alpha=2 * int(rank), target_modules=['c_attn', 'c_proj', 'c_fc'],
                                                       fan_in_fan_out=True, task_type='CAUSAL_LM'))
model.eval()  # no dropout; gradients are still computed
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=float(rate), betas=(0.9, 0.999), weight_decay=0, fused=True)
rows = torch.from_numpy(np.load(ids))
step = 0


def run():
    global step
    start = time.perf_counter()
    first = step * int(batch) % len(rows)
    tokens = rows[first:first + int(batch)]
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast('cpu', torch.bfloat16, enabled=precision == 'bf16'):
        loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
    step += 1
    return time.perf_counter() - start, loss.item()


print(json.dumps({'ready': True}), flush=True)
for line in sys.stdin:
    times = [run() for _ in range(int(line.split()[1]))]
    print(json.dumps({'seconds': [t for t, _ in times], 'losses': [loss for _, loss in times]}), flush=True)

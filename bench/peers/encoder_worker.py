"""ONNX Runtime or OpenVINO as a process that waits for commands: bench/run_encoder.py starts it; the commands are those of
bench/workers/encoder.cpp. encoder_worker.py onnxruntime|openvino THREADS"""
import json
import os
import sys
import time

import numpy as np


def onnxruntime(file, threads, precision):
    del precision  # its CPU provider has no matmul of bf16
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(file, options, providers=['CPUExecutionProvider'])
    return lambda inputs: session.run(None, inputs)[0]


def openvino(file, threads, precision):
    import openvino as ov
    core = ov.Core()
    model = core.compile_model(file, 'CPU', {'INFERENCE_NUM_THREADS': threads, 'PERFORMANCE_HINT': 'LATENCY', 'INFERENCE_PRECISION_HINT': precision})
    request = model.create_infer_request()
    return lambda inputs: request.infer(inputs, share_inputs=True, share_outputs=True)[0]


def inputs_of(batch, length):
    tokens = (np.arange(batch * length).reshape(batch, length) * 7919 + 13) % 30522
    mask = np.ones((batch, length), np.int64)
    mask[0, length - length // 4:] = 0
    return {'input_ids': tokens.astype(np.int64), 'attention_mask': mask}


def main():
    kind, threads = sys.argv[1], int(sys.argv[2])
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    print('{}', file=answers, flush=True)
    run = inputs = None
    for line in sys.stdin:
        words = line.split()
        if words[0] == 'open':
            run = {'onnxruntime': onnxruntime, 'openvino': openvino}[kind](words[1], threads, words[2])
            answer = {}
        elif words[0] == 'sizes':
            inputs = inputs_of(int(words[1]), int(words[2]))
            answer = {'values': [float(value) for value in np.ravel(run(inputs))[:64]]}
        else:
            seconds = []
            for _ in range(int(words[1])):
                start = time.perf_counter()
                run(inputs)
                seconds.append(time.perf_counter() - start)
            answer = {'seconds': seconds}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == '__main__':
    main()

"""How suite_torch's tensors become the arguments of the operators of benchmarks/suite, and outputs become what its references look like."""
from __future__ import annotations

from typing import Any, Sequence

from .emitted import Emitted

DEPTHWISE = {'CV06': (1,), 'FC03': (1,), 'FC04': (1,)}  # inputs [C, 1, R, S] that the operator takes as [C, R, S]


def channels_last(cid: str) -> bool:
    return cid[:2] in ('CV', 'FC') and cid != 'CV08'


def last(x: Any) -> Any:
    """[N, C, …] as [N, …, C]; no copy of a channels_last tensor"""
    return x.permute(0, *range(2, x.dim()), 1).contiguous()


def group_offsets(torch: Any, e: Emitted, x: Any) -> Any:
    """i64[E + 1] from the list that the case in the .acu file gives: the group sizes of suite_torch"""
    import re
    body = re.search(rf'case {e.case} for .*?offsets = \[(.*?)\]', open(e.source, encoding='utf-8').read(), re.S)
    assert body, f'{e.case} has no offsets'
    return torch.tensor([int(v) for v in body.group(1).split(',')], dtype=torch.int64, device=x.device)


def operator_inputs(torch: Any, e: Emitted, tensors: Sequence[Any]) -> list[Any]:
    """contiguous tensors, one for each tensor input of the operator, in its order"""
    found = []
    for at, t in enumerate(tensors):
        if channels_last(e.case) and t.dim() >= 4:
            if at in DEPTHWISE.get(e.case, ()):
                t = t.squeeze(1)
            elif e.case == 'FC04' and at == 2:
                t = t.flatten(1)
            else:
                t = last(t)
        found.append(t.contiguous())
    if e.case in ('GV07', 'GV08'):
        found.append(group_offsets(torch, e, tensors[0]))
    check_inputs(e, found)
    return found


def check_inputs(e: Emitted, tensors: Sequence[Any]) -> None:
    want, got = [p.sizes for p in e.inputs], [tuple(t.shape) for t in tensors]
    assert want == got, f'{e.case} takes {want}, suite_torch builds {got}'


def reference_layout(e: Emitted, outputs: Sequence[Any]) -> Any:
    """the outputs as suite_torch's reference has them: one tensor, or a tuple"""
    outs = list(outputs)
    if channels_last(e.case) and outs[0].dim() >= 4:
        outs[0] = outs[0].permute(0, outs[0].dim() - 1, *range(1, outs[0].dim() - 1))
    if e.case == 'FG08':
        outs[0] = outs[0][:, None]
    if e.case == 'FM05':
        outs[1] = outs[1][:, None]
    return outs[0] if len(outs) == 1 else tuple(outs)


def torch_type(torch: Any, name: str) -> Any:
    return {'bool': torch.bool, 'i8': torch.int8, 'u8': torch.uint8, 'i16': torch.int16, 'i32': torch.int32, 'i64': torch.int64, 'f8e4m3': torch.float8_e4m3fn,
            'f8e5m2': torch.float8_e5m2, 'f16': torch.float16, 'bf16': torch.bfloat16, 'f32': torch.float32, 'f64': torch.float64}[name]


def check_types(torch: Any, e: Emitted, tensors: Sequence[Any]) -> None:
    for p, t in zip(e.inputs, tensors):
        assert torch_type(torch, p.type) == t.dtype, f'{e.case}: {p.name} is {p.type}, suite_torch builds {t.dtype}'

"""An emitted operator on tensors of the device: several sets of inputs, one of outputs, the workspace of the caller."""
from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from .launcher import Argument, Descriptor, Launcher


class Failure(Exception):
    """The launcher, not the harness, did something wrong."""


def descriptor(name: str, t: Any) -> Descriptor:
    return Descriptor(t.data_ptr(), name, tuple(t.shape), None if t.is_contiguous() else tuple(t.stride()))


def fill_bytes(torch: Any, t: Any, byte: int) -> None:
    (t if t.dim() else t.reshape(1)).view(torch.uint8).fill_(byte)


class Operator:
    def __init__(self, torch: Any, launcher: Launcher, sets: Sequence[Sequence[Any]], outputs: Sequence[Any]) -> None:
        self.torch, self.launcher, self.sets, self.outputs = torch, launcher, sets, list(outputs)
        arguments = [self.arguments(tensors) for tensors in sets]
        self.needed = launcher.workspace_bytes(arguments[0])
        torch.cuda.synchronize()
        self.workspace = torch.empty(max(1, self.needed), dtype=torch.uint8, device='cuda')
        place = (self.workspace.data_ptr(), self.needed) if self.needed else (0, 0)
        self.bound = [launcher.bind(a, *place) for a in arguments]

    def arguments(self, tensors: Sequence[Any]) -> list[Argument]:
        each = {'input': iter(tensors), 'output': iter(self.outputs)}
        return [p.value if p.role == 'scalar' else descriptor(p.type, next(each[p.role])) for p in self.launcher.emitted.params]

    def launch(self, at: int) -> None:
        """on torch's current stream"""
        answer = self.bound[at](self.torch.cuda.current_stream().cuda_stream)
        if answer is not None:
            raise Failure(f'{answer.status}: {answer.message}')

    @property
    def calls(self) -> list[Callable[[], None]]:
        return [functools.partial(self.launch, at) for at in range(len(self.bound))]

    def poisoned(self, at: int, byte: int) -> float:
        """one launch over poisoned outputs and workspace; microseconds"""
        for t in [*self.outputs, self.workspace]:
            fill_bytes(self.torch, t, byte)
        a, b = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record()
        self.launch(at)
        b.record()
        self.torch.cuda.synchronize()
        return a.elapsed_time(b) * 1e3

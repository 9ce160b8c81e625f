"""The kernel as a function of PyTorch, for losses that autograd has to find the gradient of."""

from typing import Any

import torch
from torch import Tensor

from pi3nn.engine.native.given import Given
from pi3nn.engine.native.kernel import Kernel


class Fused(torch.autograd.Function):
    """`Kernel.forward` with a gradient: of the parameters, which are views of `flat`, in order."""

    @staticmethod
    def forward(
        ctx: Any, kernel: Kernel, flat: Tensor, x: Tensor, masks: Tensor | None, *leaves: Tensor
    ) -> Tensor:
        ctx.kernel, ctx.flat, ctx.given = kernel, flat, Given(x, masks=masks)
        ctx.shapes = [p.shape for p in leaves]
        return kernel.forward(flat, ctx.given)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        grad = torch.empty_like(ctx.flat)
        ctx.kernel.backward(ctx.flat, ctx.given, slopes[0], grad)
        sizes = [shape[1:].numel() for shape in ctx.shapes]
        parts = torch.split(grad[:, : sum(sizes)], sizes, dim=1)
        views = (part.view(shape) for part, shape in zip(parts, ctx.shapes, strict=True))
        return (None, None, None, None, *views)

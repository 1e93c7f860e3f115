"""The model on one screen: sigmoid layers, then a linear head with one score for each cluster.

    codes  = f_L ∘ … ∘ f_1 (x),  f_l(a) = logistic(a θ_l + bias)          eq. (3)
    scores = (codes − centre) / spread · Wᵀ + bias                        eq. (1), (2)

Differs from the paper: it has neither centre nor spread. They are constants, taken from the codes where training
starts, and make λ mean the same whether the codes vary much or little (docs/design/start-and-scale.md).

The backward pass is written out: it needs nothing but the derivative of the objective with respect to the scores,
and costs little more than its matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from .inputs import Input


@dataclass
class Layer:
    """One logistic layer: θ_l, and the row that [x, 1] adds to it."""

    weight: Tensor  # (inputs, units)
    bias: Tensor  # (units,)


@dataclass
class Network:
    """Sigmoid layers, the centre and the spread of their codes, and the head."""

    layers: list[Layer]
    centre: Tensor = field(default_factory=lambda: torch.empty(0))  # (d,)
    spread: float = 1.0
    head: Tensor = field(default_factory=lambda: torch.empty(0))  # (K, d)
    head_bias: Tensor = field(default_factory=lambda: torch.empty(0))  # (K,)
    activations: list[Tensor] = field(default_factory=list, repr=False)  # of the last forward pass

    def copy(self) -> Network:
        """One that can be trained without changing this one."""
        layers = [Layer(layer.weight.clone(), layer.bias.clone()) for layer in self.layers]
        return Network(layers, self.centre, self.spread, self.head.clone(), self.head_bias.clone())

    @property
    def tensors(self) -> list[Tensor]:
        """All that the network is, for `of`: the parameters, the centre and the spread."""
        return [*self.parameters, self.centre, torch.tensor([self.spread], dtype=torch.float64, device="cpu")]

    @classmethod
    def of(cls, tensors: list[Tensor], device: torch.device) -> Network:
        """The network of such tensors, on a device."""
        *layers, head, head_bias, centre = (tensor.to(device) for tensor in tensors[:-1])
        pairs = zip(layers[::2], layers[1::2], strict=True)
        return cls([Layer(weight, bias) for weight, bias in pairs], centre, float(tensors[-1]), head, head_bias)

    @property
    def parameters(self) -> list[Tensor]:
        """Everything that training moves: the layers from the first to the last, then the head."""
        return [p for layer in self.layers for p in (layer.weight, layer.bias)] + [self.head, self.head_bias]

    @property
    def squared_norm(self) -> Tensor:
        """‖W‖² of (8), with the bias as one more column of W."""
        return self.head.square().sum() + self.head_bias.square().sum()

    def codes(self, x: Input) -> Tensor:
        """Project the data into the latent space, (n, d): eq. (3)."""
        self.activations = []
        for layer in self.layers:
            below = self.activations[-1] if self.activations else None
            drive = x.times(layer.weight, layer.bias) if below is None else torch.addmm(layer.bias, below, layer.weight)
            self.activations.append(drive.sigmoid_())
        return self.activations[-1] if self.activations else x.rows(slice(None)).clone()

    def scores(self, x: Input) -> Tensor:
        """One score for every point and cluster, (n, K)."""
        weight = self.head.T / self.spread  # (d, K)
        bias = self.head_bias - self.centre @ weight
        return torch.addmm(bias, self.codes(x), weight) if self.layers else x.times(weight, bias)

    def gradients(self, x: Input, step: Tensor, weight_penalty: float) -> list[Tensor]:
        """Carry dS back to every parameter, in the order of ``parameters``; uses up the last forward pass."""
        below = self.activations.pop() if self.layers else None
        against = x.transposed_times(step).T if below is None else step.T @ below  # (K, d)
        total = step.sum(0)  # (K,)
        against.addmm_(total[:, None], self.centre[None], alpha=-1).div_(self.spread)  # dSᵀ (h − centre) / spread
        gradients = [
            against.add_(self.head, alpha=weight_penalty),  # eq. (11)
            total + weight_penalty * self.head_bias,  # eq. (11), the column of W that meets the 1 of [h, 1]
        ]
        push = step @ (self.head / self.spread) if self.layers else step  # dH: eq. (12) to (15)
        for depth in range(len(self.layers) - 1, -1, -1):
            assert below is not None
            push = torch.ops.aten.sigmoid_backward.grad_input(push, below, grad_input=push)  # dH ∘ f(1 − f)
            below = self.activations.pop() if depth else None
            weight = x.transposed_times(push) if below is None else below.T @ push  # dθ_l
            gradients[:0] = [weight, push.sum(0)]
            if depth:
                push = push @ self.layers[depth].weight.T
        return gradients

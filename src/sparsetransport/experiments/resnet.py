"""ResNet-18 for images of 32 by 32 pixels."""

from torch import Tensor, nn


class Block(nn.Module):
    """Two convolutions and a skip connection."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        around: list[nn.Module] = []
        if stride != 1 or inputs != outputs:
            around = [nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)]
        self.around = nn.Sequential(*around)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        """The sum of the convolutions and the skip connection."""
        y: Tensor = self.relu(self.body(x) + self.around(x))
        return y


class ResNet18(nn.Module):
    """ResNet-18 with ``width`` channels in the first of four stages, doubled in each further stage."""

    def __init__(self, classes: int = 2, width: int = 64) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            nn.Conv2d(3, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
        ]
        inputs = width
        for stage in range(4):
            outputs = width * 2**stage
            layers += [Block(inputs, outputs, 1 if stage == 0 else 2), Block(outputs, outputs, 1)]
            inputs = outputs
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(inputs, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of shape (n, classes)."""
        y: Tensor = self.head(self.body(x).mean((2, 3)))
        return y

"""Applications: colour transfer, network design, word alignment, and a demo."""

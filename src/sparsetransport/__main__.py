"""``python -m sparsetransport`` is the command ``sparsetransport``."""

from .cli import main

if __name__ == "__main__":
    main()

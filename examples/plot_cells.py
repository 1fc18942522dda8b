"""
Cells of two days
=================

Cells of three types on day 0 and, in other proportions and with a batch shift, on day 2. A plan with one link for each
cell of day 2 couples the days; a table of its links says which type becomes which.

Needs ``pip install sparsetransport[frames]``. Writes cells.png.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import sparsetransport as st

rng = np.random.default_rng(0)
centres = 3.0 * rng.normal(size=(3, 20))
types = np.array(["stem", "early", "late"])


def day(counts, shift):
    kind = np.repeat(np.arange(3), counts)
    cells = centres[kind] + rng.normal(size=(len(kind), 20)) + shift
    return pd.DataFrame(cells, index=[f"{types[k]}-{number}" for number, k in enumerate(kind)])


first, second = day([60, 30, 10], 0.0), day([20, 40, 40], 0.5 * rng.normal(size=20))
res = st.solve_sample(first, second, budget=st.PerColumn(1), kernels=("median", st.Delta()), unbalanced=(5.0, 2000.0))
links = res.to_frame().assign(
    start=lambda t: t.source.str.split("-").str[0], end=lambda t: t.target.str.split("-").str[0]
)
table = links.pivot_table("mass", "start", "end", "sum", fill_value=0.0).reindex(index=types, columns=types)
table = table.fillna(0.0)
print(table.round(3))

figure, ax = plt.subplots(figsize=(5, 4.2), layout="constrained")
image = ax.imshow(table, cmap="Blues")
ax.set(xticks=range(3), yticks=range(3), xticklabels=types, yticklabels=types, xlabel="day 2", ylabel="day 0")
ax.set_title(f"mass between types, {len(links)} links")
figure.colorbar(image)
figure.savefig("cells.png", dpi=120)

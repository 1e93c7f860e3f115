"""Files of any kind as items: ids that stay, features to learn from, and a face that a person can judge.

`items` is the way in. Each kind has a file of its own: `tables`, `vectors`, `images` and `texts`. A table is opened by
`table_files` (text tables by `csv_files`), and `columns` makes features of it. `answers` reads pairs.
"""

from .answers import read_pairs
from .items import Items, Recipe, read_items

__all__ = ["Items", "Recipe", "read_items", "read_pairs"]

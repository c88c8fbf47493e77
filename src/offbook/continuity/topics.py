"""Topics (D4): what they speak of, keep returning to and have left.

`fold` (turn by turn) · `words` (what of a turn may be one) · `general_words` (what never is).
"""

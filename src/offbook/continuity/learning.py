"""From what was said to what was learnt: rules that read one message, and a fold that brings their findings together.

`own_words` gives the sentences that count, a module for each kind finds what they teach, `reading` puts it into words,
`fold` joins it with what is known. Precision goes before recall: a lesson is told again and again, so one that is none
does more harm than one that was missed. All of it is pure.
"""

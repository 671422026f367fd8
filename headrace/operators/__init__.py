"""The operators of the DSL: each is bound to a task and then processes record by record.

A module has the name of the call that it implements; an operator is a frozen value that says how the call was made.
`bind` gives a task the function that processes one record. This is the hot path: these functions are closures, whose
variables are at hand, and a function that fails is reported through `fail`, which returns to drop the record.
"""

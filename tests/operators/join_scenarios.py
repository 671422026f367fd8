"""Scenarios from Kafka Streams' documentation of joins, with which several tests of joins begin."""

STREAMS = """
                              join                             | left_join         | outer_join
    left  k=None@1000  ->
    right k=None@2000  ->
    left  k=A@3000     ->
    right k=a@4000     -> k=A+a@4000
    left  k=B@5000     -> k=B+a@5000
    right k=b@6000     -> k=A+b@6000 k=B+b@6000
    left  k=None@7000  ->
    right k=None@8000  ->
    left  k=C@9000     -> k=C+a@9000 k=C+b@9000
    right k=c@10000    -> k=A+c@10000 k=B+c@10000 k=C+c@10000
    right k=None@11000 ->
    left  k=None@12000 ->
    right k=None@13000 ->
    right k=d@14000    -> k=A+d@14000 k=B+d@14000 k=C+d@14000
    left  k=D@15000    -> k=D+a@15000 k=D+b@15000 k=D+c@15000 k=D+d@15000
    left  k=E@40000    ->
    left  k=F@60001    ->                                      | k=E+None@40000    | k=E+None@40000
    right k=f@80002    ->                                      | k=F+None@60001    | k=F+None@60001
    left  k=G@100003   ->                                      |                   | k=None+f@80002
"""
"""Two streams, with a window of 15 s and a grace of 5 s."""

STREAM_AND_TABLE = """
                       join       | left_join
    left  k=None@1  ->
    right k=None@2  ->
    left  k=A@3     ->            | k=A+None@3
    right k=a@4     ->
    left  k=B@5     -> k=B+a@5
    right k=b@6     ->
    left  k=None@7  ->
    right k=None@8  ->
    left  k=C@9     ->            | k=C+None@9
    right k=c@10    ->
    right k=None@11 ->
    left  k=None@12 ->
    right k=None@13 ->
"""
"""A stream and a table, in the order of the timestamps."""

TABLES = """
                       join      | left_join   | outer_join
    left  k=None@1  ->
    right k=None@2  ->
    left  k=A@3     ->           | k=A+None@3  | k=A+None@3
    right k=a@4     -> k=A+a@4
    left  k=B@5     -> k=B+a@5
    right k=b@6     -> k=B+b@6
    left  k=None@7  -> k=None@7  | k=None@7    | k=None+b@7
    right k=None@8  ->           |             | k=None@8
    left  k=C@9     ->           | k=C+None@9  | k=C+None@9
    right k=c@10    -> k=C+c@10
    right k=None@11 -> k=None@11 | k=C+None@11 | k=C+None@11
    left  k=None@12 ->           | k=None@12   | k=None@12
    right k=None@13 ->
"""
"""Two tables, in the order of the timestamps."""

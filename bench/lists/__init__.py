"""How long the pages of the admin take, beside ever more tasks.

A month of tasks of twenty types and five thousand owners, some of which wait, run or have failed, one with a result of
10 MB. Each page is asked for through Django, without a network; sizes are asked in turns; medians.
"""

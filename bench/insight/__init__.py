"""How long it takes to say how long tasks take, beside ever more of them.

A month of finished tasks of twenty types, log-normal durations, as the registry keeps them: the tasks of the last three
hours as rows that are rolled up as upkeep does it, the rollups of all hours before as copies of those, folded into days as
upkeep does it. Sizes are asked in turns; medians.

    one type     the statements and the arithmetic behind `GET /plan?task=…`: newest tasks, rollups, queue waits, plan
    all types    the same for `manage.py pollplan`
    roll up      one hour of tasks, with the statement of upkeep
"""

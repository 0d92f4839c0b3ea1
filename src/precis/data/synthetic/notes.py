"""Scenarios of the synthetic corpus: notes from the field and the laboratory."""

from __future__ import annotations

from precis.data.synthetic import words as w
from precis.data.synthetic.grammar import Scenario, scenario

FIELD = scenario(
    "field notes",
    {
        "site": w.town,
        "date": w.date(),
        "count": w.number(11, 95),
        "before": w.number(11, 95),
        "nests": w.number(2, 9),
        "helper": w.person(),
        "animal": w.one_of(
            "grey herons",
            "storks",
            "otters",
            "beavers",
            "kingfishers",
            "barn owls",
            "fire salamanders",
            "tree frogs",
            "swallows",
            "bats",
            "cranes",
            "pond turtles",
            "hedgehogs",
            "black kites",
        ),
        "habitat": w.one_of("lake", "marsh", "forest", "quarry", "river", "moor"),
        "why": w.table("""
short / up
more food / there is [plenty of food|more to eat than before]
clean water / the water has become [clear|clean] again
fewer visitors / hardly anybody [walks|comes] here now
a warm spring / [spring was warm|the warm spring helped]
"""),
        "bad": w.table("""
short / down
drought / [hardly any rain has fallen|the ground has dried out]
building work / [diggers and cranes have moved in|houses are going up close by]
a hard winter / many [did not survive|died in] the cold winter
poisoned water / something has poisoned the water
"""),
    },
    """
hook: Up at four, wet boots, [one biscuit each|no coffee]. [Fog until eight.|Wind from the east.]
hook: [Notes typed up by|Entry by] {elder}, as {visitor} [has lost the pen|was ill].
lead(place): [Morning count|Survey] at the {habitat} near {site} on {date}.
lead(place, count): We counted {count} {animal} [at|around] the {habitat} near {site} on {date}.
lead(place): On {date} {helper} and I [went|walked] to the {habitat} near {site} [once more|to count].
place: Place and day: the {habitat} near {site}, {date}.
count: [Result|Total]: {count} {animal}[|, each seen by two of us].
count: In all [we saw|there were] {count} {animal}.
up: [A year ago|Last year] there were only {low}; the [likely reason|explanation]: {why.up}.
up: That is [better|more] than last year, when we [found|had] {low}. {why.up}.
down!up: [A year ago|Last year] there were still {high}; the [likely reason|explanation]: {bad.down}.
down!up: That is [worse|fewer] than last year, when we [found|had] {high}. {bad.down}.
nests?: {nests} of them were born [this year|in spring].
nests?: Among them were {nests} young ones.
aside: [Also seen|Nearby]: {some_number} crows and [a fox|one lost dog].
aside: A [hiker|walker] from {far_town} told us of {some_number} wolves near {other_town}; [we have doubts|no
    proof].
aside: {other}, who did the counts until {late_year}, [used a boat|never came before noon].
aside: Lunch: {some_number} cherries and a sandwich from {far_town}; [the apple went to a horse|very dry].
aside: The farmer, {visitor}, [lets us park for free|showed us a photograph of {past_year}].
aside: The [bridge|hide] from {past_year} is [rotten|falling down]; tell {other} of {some_company}.
close: Next visit on {some_day}, [bring the long ladder|weather permitting].
summary: {count} {animal} were counted at the {habitat} near {site} on {date}, <up: up from {low} last year
    thanks to {why.short}><down: down from {high} last year because of {bad.short}>.<nests: {nests} were
    young.>
summary: A count on {date} at the {habitat} near {site} found {count} {animal}, <up: more than last year
    ({low}) because of {why.short}><down: fewer than last year ({high}) because of {bad.short}>.<nests:
    {nests} were young.>
""",
    common={"low": w.number(2, 10), "high": w.number(96, 240)},
    passing=w.PASSING,
)

LAB = scenario(
    "lab notes",
    {
        "sample": w.product(2, 90),
        "leader": w.person(),
        "degrees": w.figure(35, 480),
        "hours": w.number(2, 48),
        "percent": w.figure(11, 89),
        "again": w.weekday(),
        "thing": w.one_of(
            "glue", "paint", "battery", "glass", "seal", "foam", "cement", "cable", "ink", "lens coating"
        ),
        "good": w.table("""
short / long
stronger / [took a heavier load|could bear more weight]
lighter / [weighed less|was not as heavy]
longer-lasting / [went on working for longer|held out longer]
cheaper / [cost less to make|could be made for less money]
"""),
        "bad": w.table("""
short / long
cracked / [cracks ran through it|it showed cracks everywhere]
melted / [it turned to liquid|nothing but a puddle was left]
lost its colour / [the colour was gone|it had turned white]
caught fire / [there were flames|it burst into flames]
"""),
    },
    """
hook: [The fan is noisy again, so the windows stay shut.|The scales are back, so we could begin on time.]
hook: [Before I forget|Note to myself]: {elder} wants the key of room {some_number} back [by {some_day}|at
    once].
lead(what): [Today|This week] we tested the new {thing} {sample}.
lead(what, heat): The {thing} {sample} spent {hours} hours at {degrees} degrees [in our oven|under the lamp].
lead(what): {leader} asked for a [report|few lines] on the {thing} {sample}.
what: [Under test|On the bench]: the {thing} {sample}.
heat: It was kept at {degrees} degrees for {hours} hours.
heat: [Conditions|Settings]: {degrees} degrees, {hours} hours.
good: Compared with the old {thing}, it {good.long}, by {percent} percent.
good: Result: it {good.long} than the old one, and by {percent} percent.
bad!good: [When we opened the door|In the end] {bad.long}.
bad!good: Result: {bad.long}.
again?: The test will be [repeated|done again] on {again}.
again?: On {again} we [try|go through] it all once more.
aside: An older mixture, {old_sample}, [failed|did well] in {late_year} at our office in {far_town}.
aside: {other} [dropped {some_number} test tubes|forgot the goggles] and [is very sorry|swept up].
aside: The oven, bought from {some_company} in {past_year}, [smells of burnt toast|needs a new door].
aside: Visitors from {other_town} [took photographs of everything|are expected on {some_day}; please tidy up].
aside: The lift is [stuck|out of order] again; {visitor}, the {trade}, comes on {some_day}.
aside: [A parcel|A letter] for {other} of {some_company} [lies|has lain] on my desk since {some_day}.
close: [Signed|Written by] {visitor}.
summary: <good: The new {thing} {sample} was {percent} percent {good.short} than the old one><bad: The {thing}
    {sample} {bad.short}> in a test at {degrees} degrees for {hours} hours.<again: The test will be repeated
    on {again}.>
summary: In a test of {hours} hours at {degrees} degrees, the {thing} {sample} <good: proved {percent} percent
    {good.short} than the old one><bad: {bad.short}>.<again: It will be tested again on {again}.>
""",
    common={"old_sample": w.product(2, 90)},
    passing=w.PASSING,
)

SCENARIOS: tuple[Scenario, ...] = (FIELD, LAB)

"""Scenarios of the synthetic corpus: accidents, storms and other incidents."""

from __future__ import annotations

from precis.data.synthetic import words as w
from precis.data.synthetic.grammar import Scenario, scenario

ACCIDENT = scenario(
    "accident",
    {
        "road": w.street,
        "town": w.town,
        "day": w.weekday(),
        "time": w.clock(6, 22),
        "hurt": w.number(1, 9),
        "crash": w.table("""
short / long
a bus and a van / a [city|town] bus and a delivery van
a lorry and a tram / a lorry [loaded with gravel|carrying timber] and a tram
a taxi and a fire engine / a taxi and a fire engine on its way to a [call|false alarm]
two cars / two cars [travelling in opposite directions|heading for the ring road]
a tractor and a minibus / a tractor [pulling a trailer|with no lights] and a [hotel|school] minibus
a motorcycle and a milk float / a motorcycle and an old milk float
"""),
        "cause": w.table("""
short / long
failed brakes / the brakes [had failed|did not work]
ice on the road / [the road had iced over|a sheet of ice had formed on the road]
a broken traffic light / a traffic light [was not working|had gone dark]
thick fog / [drivers could barely see in the fog|fog had cut the view to a few metres]
an oil spill / someone had spilled oil [across the road|on the bend]
a dog on the road / a dog [ran|had run] [into the traffic|out between the parked cars]
"""),
        "hours": w.number(2, 9),
    },
    """
hook: {road} has never been [an easy|a quiet] [street|place to cross], least of all on a {day}.
hook: {elder} was [watering plants|making tea] when the windows [began to rattle|shook].
lead(what, where): There was a [collision|crash] between {crash.long} on {road} in {town} [on {day}|at {time}
    on {day}].
lead(what, where, hurt): {hurt} [{hurt:person was/people were} hurt|{hurt:person needed/people needed}
    hospital treatment] after {crash.long} [crashed|collided] in {road}, {town}.
lead(where): Emergency services were called to {road} in {town} [shortly after {time}|at {time}] on {day}.
what: [Witnesses|Neighbours] [saw|heard] {crash.long} [run into each other|collide].
what: The [vehicles involved|wrecks] were {crash.long}, [police|officers] [said|reported].
where: It happened on {road}, [near the centre of|on the edge of] {town}.
hurt: [Paramedics|Doctors] treated {hurt} {hurt:person/people} [with broken bones|for cuts and shock].
hurt: The hospital [took in|admitted] {hurt} {hurt:patient/patients}, none in [danger|a serious condition].
cause: According to the [police|first report], {cause.long}.
cause: Investigators [believe|are sure] that {cause.long}[| just before the impact].
shut?: Traffic could not get through for {hours} hours.
shut?: It took {hours} hours [to clear the road|before the road was free again].
aside: The last serious [crash|accident] here was in {past_year}, when a {trade} [lost a leg|drove into the
    canal].
aside: {other}, who lives across the road, [has asked for a crossing|has written to the council] {some_number}
    times.
aside: {visitor}, {age}, [missed a train to|was on the way to a wedding in] {far_town} [because of the jam|and
    gave up].
aside: A crossing like the one in {other_town} would [cost little|help], say [parents|residents].
close: [Anyone who saw it|Witnesses] can [call|write to] inspector {visitor} until {some_day}.
summary: {hurt} {hurt:person was/people were} injured when {crash.short} collided on {road} in {town}. The
    cause was {cause.short}<shut: , and the road was closed for {hours} hours>.
summary: A crash between {crash.short} injured {hurt} {hurt:person/people} on {road}, {town}, because of
    {cause.short}<shut: ; the road was shut for {hours} hours>.
""",
    common={},
    passing=w.PASSING,
)

STORM = scenario(
    "storm",
    {
        "town": w.town,
        "day": w.weekday(),
        "back": w.weekday(),
        "roofs": w.number(11, 95),
        "homes": w.number(400, 9800, step=50),
        "hurt": w.number(2, 9),
        "speed": w.figure(90, 165),
        "storm": w.table("""
short / long / verb
a storm / [strong winds|a storm from the west] / [swept|blew|raced]
a hailstorm / [hailstones as big as plums|hail the size of walnuts] / [fell|rained down]
a tornado / [a small tornado|a tornado that lasted ten minutes] / [swept|tore]
a thunderstorm / [thunder and violent gusts|a violent thunderstorm] / [swept|moved|passed]
"""),
    },
    """
hook: The [sky over the hills|evening] had been [strangely yellow|calm] [all afternoon|until six].
hook: [Dogs hid under tables|Birds fell silent] [half an hour|minutes] before it [began|came].
lead(what): {storm.long} {storm.verb} [over|across] {town} [on {day}|in the night to {day}].
lead: It was a sleepless night in {town}, and [brooms have sold out|saws have been at work since dawn].
lead(roofs): In {town}, {roofs} houses [need a new roof|have lost part of the roof] [since {day}|this week].
what: [On {day}|Shortly before midnight] {storm.long} {storm.verb} [over|across] the [streets|rooftops].
roofs: [The fire brigade counted|Inspectors listed] {roofs} damaged roofs.
roofs: The [wind|weather] [tore open|took the tiles off] {roofs} roofs.
power: [Some|About] {homes} households were [left in the dark|without electricity].
power: The lights went out in {homes} homes[| and stayed out until morning].
hurt?: The doctors on duty [saw|treated] {hurt} injured people.
hurt?: [Flying glass|Falling branches] hit {hurt} people, [none of them badly|who are out of danger].
school?: [Pupils have no lessons|Children can sleep late]: classes start again on {back}.
school?: The schools [will not open before|stay shut until] {back}.
aside: Gusts of {speed} kilometres an hour were [measured|recorded] [near|at] {far_town}.
aside: The last such night was in {past_year}, when the church [lost its spire|bell fell], {elder}
    [recalled|said].
aside: {other}, {age}, a {trade}, [found a garden chair on the roof|lost a greenhouse and {some_number} tomato
    plants].
aside: [Insurers|Roofers] from {other_town} are [already handing out cards|fully booked until {some_month}].
aside: {visitor} of the weather service [blamed warm air from the sea|said forecasts had been clear].
close: More rain is [expected|forecast] [on {some_day}|for {far_town}].
summary: {storm.short} in {town} damaged {roofs} roofs and left {homes} homes without power.<hurt: {hurt}
    people were injured.><school: Schools are closed until {back}.>
summary: {roofs} roofs were damaged and {homes} homes lost power when {storm.short} hit {town}<hurt: ,
    injuring {hurt} people>.<school: Schools reopen on {back}.>
""",
    common={},
    passing=w.PASSING,
)

FIRE = scenario(
    "fire",
    {
        "town": w.town,
        "road": w.street,
        "day": w.weekday(),
        "firm": w.company("Bakery", "Paints", "Furniture", "Storage", "Recycling"),
        "out": w.number(11, 95),
        "crews": w.number(21, 99),
        "damage": w.number(20, 950, step=10),
        "building": w.table("""
short / long
a warehouse / a warehouse [full of paper|that belongs to {firm}]
a hotel / a small hotel [under the trees|with a red roof]
a school / a school [from the fifties|with a tiled roof]
a block of flats / a [block of flats|six-storey apartment block]
a factory / a factory [owned by {firm}|that makes candles]
a restaurant / a restaurant [near the river|under new management]
"""),
        "cause": w.table("""
short / long
a candle / a candle [had been left burning|fell over]
a faulty heater / a heater [had a fault|was not working properly]
fireworks / fireworks had been [thrown onto the roof|lit indoors]
lightning / [lightning struck the roof|the building was hit by lightning]
a forgotten iron / [an iron had not been unplugged|someone forgot to switch off the iron]
arson / [the fire was started on purpose|someone laid the fire deliberately]
"""),
    },
    """
hook: [The smoke could be seen|The smell hung in the air] as far away as {far_town}.
hook: {elder}, {age}, [thought it was the sunrise|noticed the glow first and rang the doorbells].
lead(what): {building.long} on {road} in {town} [caught fire|went up in flames] [on {day}|in the night to
    {day}].
lead(what, out): [Flames|Thick smoke] drove {out} people from {building.long} on {road}, {town}.
lead: [Sirens woke|A red glow over the roofs alarmed] the people on {road} in {town} [on {day}|in the small
    hours of {day}].
what: [What burned|The building in flames] was {building.long}.
what: When the [first engine|fire brigade] arrived, {building.long} was [burning|in flames].
out: {out} people [got out in time|had to leave the building].
out: Police [led|brought] {out} people to safety.
cause: It [seems|is clear] that {cause.long}.
cause: {cause.long}, the fire brigade [believes|found].
hurt: Nobody was [hurt|injured].
hurt: Everyone [escaped unharmed|is safe and well].
damage?: Repairs [will cost|are put at] {damage} thousand euros.
damage?: The owner [speaks of|reckons with] a loss of {damage} thousand euros.
aside: {crews} firefighters, some from as far as {other_town}, [were at work|took turns] until [noon|dawn].
aside: The building had [been sold|changed hands] in {late_year} to {some_company}.
aside: In {past_year} the [same street|house next door] [had burned too|was saved by the rain].
aside: A neighbour, {other}, [handed out {some_number} blankets|carried out two canaries].
aside: {visitor}, a {trade}, [missed a train to {far_town}|slept through it all].
close: Windows should [stay|be kept] closed until {some_day}.
summary: A fire caused by {cause.short} in {building.short} on {road}, {town}, forced {out} people to leave.
    Nobody was hurt<damage: , but the damage is {damage} thousand euros>.
summary: {out} people left {building.short} on {road} in {town} unhurt when a fire caused by {cause.short}
    broke out<damage: ; the damage is {damage} thousand euros>.
""",
    common={},
    passing=w.PASSING,
)

RESCUE = scenario(
    "rescue",
    {
        "who": w.table("""
short / long
two hikers / two hikers [in light shoes|without a map]
two fishermen / two fishermen [in a small boat|who had gone out before dawn]
three children / three children [on a school trip|playing explorers]
four skiers / four skiers [who had left the slope|on a closed run]
three mushroom pickers / three [elderly mushroom pickers|people gathering mushrooms]
two cyclists / two cyclists [on holiday|in thin jackets]
"""),
        "near": w.town,
        "hours": w.number(5, 48),
        "day": w.weekday(),
        "leader": w.person(),
        "how": w.table("""
short / long
a rescue dog / [a dog called {pet} picked up the trail|{pet}, a rescue dog, began to bark]
a helicopter / a helicopter crew [spotted a red jacket|saw them waving]
a shepherd / a shepherd [heard the shouting|met them by chance]
a drone / a drone [with a heat camera saw them|caught them on film]
volunteers / [volunteers formed a chain and found them|they were discovered by volunteers]
"""),
        "pet": w.speaker(),
        "state": w.table("""
short / long
They were unhurt / [not a scratch|nothing but hunger], the doctor noted
They suffered from cold / the doctor [noted|spoke of] frozen [toes|fingers]
One of them had broken an ankle / one ankle was broken, the doctor [found|noted]
They were exhausted / the doctor [prescribed|ordered] plenty of sleep
"""),
        "why": w.table("""
short / long
fog / fog had [come down|rolled in] without warning
a dead phone battery / the battery of the phone was [empty|dead]
a wrong turn / they had [taken the wrong path|turned left instead of right]
snow / heavy snow had [hidden|covered] every sign
"""),
    },
    """
hook: [Nobody slept much|The lights stayed on] in the mountain station that night.
hook: The hills [look harmless|are gentle], but {elder}, {age}, [knows better|has seen many people lost
    there].
lead(who): {who.long} [had the search teams out|kept rescuers busy] near {near} [for {hours} hours|until
    {day}].
lead(who, hours): {hours} hours [was a long time to wait for|must have felt endless to] {who.long}
    [missing|lost] near {near}.
lead: A [long search|big operation] near {near} [has ended well|came to an end on {day}].
who: [Missing were|The search was for] {who.long}.
hours: [It took {hours} hours to find them|They were out there for {hours} hours].
hours: [Only after {hours} hours|When {hours} hours had gone by] came the good news.
how: In the end {how.long}.
how: [Then|Finally] {how.long}, said {leader}, head of the [operation|rescue team].
why: [They had got lost because|What had happened?] {why.long}.
why: The [cause of the trouble|explanation]: {why.long}.
state?: As for their health: {state.long}.
aside: In {past_year} a {trade} from {far_town} [was never seen again|went missing in the same valley].
aside: The service is called out {some_number} times a year, [mostly in {some_month}|more often than in
    {late_year}].
aside: {other}, a {trade} in {other_town}, [brought hot soup|had reported strange lights the day before].
aside: A search for {visitor} of {far_town} in {late_year} [cost a fortune|went on for {some_number} days].
close: Walkers should [leave word at home|take a map], the [police|rescuers] [advise|ask].
summary: {who.short} lost near {near} because of {why.short} were found after {hours} hours by
    {how.short}.<state: {state.short}.>
summary: Lost near {near} for {hours} hours because of {why.short}, {who.short} were found by
    {how.short}.<state: {state.short}.>
""",
    common={},
    passing=w.PASSING,
)

BURGLARY = scenario(
    "burglary",
    {
        "town": w.town,
        "road": w.street,
        "day": w.weekday(),
        "value": w.number(2000, 95000, step=500),
        "suspect": w.figure(18, 67),
        "loot": w.table("""
short / long
{count} watches / {count} watches [of great value|, some of them gold]
{count} bicycles / {count} [new|electric] bicycles
{count} violins / {count} violins [made by hand|with their cases]
{count} bottles of wine / {count} bottles of [old|red] wine
{count} laptops / {count} laptops [still in their boxes|of the newest kind]
{count} cheeses / {count} whole cheeses
"""),
        "count": w.number(3, 90),
        "shop": w.one_of(
            "a shop", "a warehouse", "the back room of a shop", "a parked lorry", "a cellar", "a showroom"
        ),
        "way": w.table("""
short / long
through the roof / [a hole had been cut in|they had come through] the roof
through a cellar window / a cellar window [was forced|had been broken]
with a stolen key / they had [a stolen|someone's stolen] key
by dressing as cleaners / they wore the overalls of a cleaning firm
through the back door / the back door had been [forced|lifted out]
"""),
    },
    """
hook: The alarm [had been switched off|rang, but nobody came].
hook: [At first|On {some_day}] {elder}, {age}, [saw nothing but a white van|thought it was a delivery].
lead(what): {loot.long} [are missing from|were taken from] {shop} on {road} in {town}.
lead: {shop} on {road} in {town} was [cleared out|visited by burglars] [on {day}|in the night to {day}].
lead(value): Burglars made off with goods worth {value} euros from {shop} on {road} in {town}.
what: [The thieves took|What is missing:] {loot.long}.
what: Gone are {loot.long}, [the owner said|and nothing else].
value: They are worth {value} euros.
value: The [insurance company|owner] puts the loss at {value} euros.
way: [Police found that|As it turned out,] {way.long}.
way: How did they get in? It seems that {way.long}.
caught: A suspect, {suspect}, [is in custody|was arrested on {day}].
caught: [Police arrested|In custody is] a [person|suspect] of {suspect}.
free!caught: [Nobody has been|No one was] arrested so far.
free!caught: There is [no trace of the thieves|still no suspect].
aside: In {other_town} [somebody stole|thieves took] {some_number} [garden gnomes|street signs] in
    {late_year}.
aside: {other}, a {trade} next door, [has bought a dog|will have new locks by {some_day}].
aside: The last theft in the street was in {past_year}: {some_number} [hams|umbrellas].
aside: Inspector {visitor}, who [grew up in {far_town}|retires in {some_month}], [has a theory|would not
    comment].
close: A reward of {some_number} euros [is offered|has been set].
summary: Thieves stole {loot.short} worth {value} euros from {shop} on {road} in {town}, getting in
    {way.short}.<caught: A suspect of {suspect} was arrested.><free: Nobody has been caught.>
summary: {loot.short} worth {value} euros were stolen from {shop} in {town} by thieves who got in
    {way.short}.<caught: Police arrested a suspect of {suspect}.><free: The thieves are still free.>
""",
    common={},
    passing=w.PASSING,
)

SCENARIOS: tuple[Scenario, ...] = (ACCIDENT, STORM, FIRE, RESCUE, BURGLARY)

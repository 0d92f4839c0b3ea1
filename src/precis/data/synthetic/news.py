"""Scenarios of the synthetic corpus: the life of a small town."""

from __future__ import annotations

from precis.data.synthetic import words as w
from precis.data.synthetic.grammar import Scenario, scenario

ASIDES = scenario(
    "side remarks",
    {},
    """
aside: {other_town}, the next town along the line, had much the same story in {late_year}.
aside: {elder}, a [retired|former] {trade}, [has seen nothing like it since|was reminded of the spring of]
    {past_year}.
aside: "[We talk of little else|My mother rang me twice about it]," said {visitor}, who had come over from
    {far_town}.
aside: [A photograph|An old map|A drawing] from {past_year} still hangs in the [town hall|post
    office|station].
aside: {other}, {age}, a {trade} from {far_town}, [shrugged|took {some_number} photographs|called it a sign of
    the times].
aside: A similar story from {other_town} made the front page [last {some_month}|in {late_year}].
aside: It was a [grey|bright|mild] day and the cafes on {some_street} were [full|nearly empty].
aside: [Reporters|Students] from {far_town} [filmed everything|asked {some_number} questions] for a
    [blog|school project].
aside: The kiosk on {some_street} sold {some_number} [rolls|cups of tea] more than on other days.
aside: {visitor}, {age}, [came by bicycle from|had walked all the way from] {far_town} to have a look.
""",
    common={},
    passing=w.PASSING,
).frames["aside"]
"""Side remarks that fit any piece of local news."""

COUNCIL = scenario(
    "council decision",
    {
        "town": w.town,
        "day": w.weekday(),
        "for": w.number(13, 29),
        "against": w.number(3, 12),
        "cost": w.figure(1, 9, tenths=True),
        "start": w.month(),
        "mayor": w.person(),
        "plan": w.table("""
short / long / why
ban cars from {road} / {road} will be [closed to cars|for pedestrians only] / the air there is bad
build a skate park on {road} / a skate park will [be built|take shape] on {road} / young people have nowhere
    to go
turn the old mill into flats / the old mill will [be rebuilt as|become] flats / the town is short of homes
plant trees along {road} / [a row of trees will go up on both sides of|trees will line] {road} / summers are
    too hot
make town buses free / nobody will [pay|need a ticket] on the town buses any more / the car parks are always
    full
replace all street lamps / new street lamps will go up everywhere / the old ones waste power
close the open-air pool / the open-air pool will [shut for good|never open again] / it loses money
move the market to {road} / market day will [take place|be held] on {road} in future / the old square is too
    small
"""),
        "road": w.street,
    },
    """
hook: [The public gallery was full|It was past midnight before anyone went home] [on {day}|that night].
hook: Few [votes|meetings] in {town} have [lasted|been awaited] so long.
lead(what, where): [After a long debate|After years of argument] the council of {town} [has decided|agreed on
    {day}]: {plan.long}.
lead(where, vote): By {for} votes to {against}, councillors in {town} [backed|approved] a [plan|proposal]
    [that has divided the town|drawn up by mayor {mayor}].
lead(what, where, cost): It will cost {cost} million euros, but it is settled: in {town}, {plan.long}.
what: Under the [plan|decision], {plan.long}.
what: In [short|plain words], {plan.long}.
where: {town} is [the first town in the region|one of few towns] to go this far.
vote: [The motion passed|It was carried] by {for} votes to {against}.
vote: {for} councillors [voted in favour|said yes], {against} [against|said no].
cost: The [bill|price] is put at {cost} million euros.
cost: The town has [set aside|found] {cost} million euros for it.
why?: Supporters [argue|say] that {plan.why}.
why?: "[It is simple|We had to act]: {plan.why}," [said|declared] the mayor.
start: [Work|The first step] is [due|expected] in {start}.
start: [Nothing will change before|Residents will see the first changes in] {start}.
aside: The opposition leader, {other}, spoke for {some_number} minutes and [quoted a poem|was cut off twice].
aside: A petition [with {some_number} names|started by {other}] was [read out|handed in] but [had no
    effect|came too late].
aside: In {other_town} a plan of the same kind [failed|was dropped] in {late_year}.
aside: {elder}, {age}, [a {trade}|who has lived here since {past_year}], [called it madness|was not
    convinced].
aside: The council [also|then] [thanked {visitor} for {some_number} years of service|renamed a bench after
    {visitor}].
close: The next [meeting|session] is on {some_day}.
summary: The council of {town} voted {for} to {against} to {plan.short}. The {cost} million euro project
    starts in {start}<why: because {plan.why}>.
summary: {town} will {plan.short} from {start} at a cost of {cost} million euros, councillors decided by {for}
    votes to {against}.
summary: Councillors in {town} approved spending {cost} million euros to {plan.short}, starting in {start}.
""",
    common={},
    passing=w.PASSING,
)

OPENING = scenario(
    "opening",
    {
        "town": w.town,
        "day": w.weekday(),
        "mayor": w.person(),
        "delay": w.number(2, 19),
        "cost": w.figure(1, 40, tenths=True),
        "end": w.month(),
        "thing": w.table("""
short / long
a library / [a public library with a roof garden|a library with room for thousands of books]
a swimming pool / [an indoor swimming pool with five lanes|a heated swimming pool]
a footbridge / [a footbridge across the river|a slim steel footbridge]
a market hall / [a covered market|a market hall made of wood and glass]
a clinic / [a clinic with its own laboratory|a clinic that is open at night]
a cinema / [a cinema with three screens|a picture house with red velvet seats]
a sports hall / [a sports hall with a climbing wall|a hall for handball and judo]
a cycle path / [a cycle path along the canal|a paved path for bicycles]
"""),
        "why": w.table("""
short / long
a lack of workers / the builders could not find enough [people|hands]
bad weather / [rain and frost had stopped the work|the winter was long and wet]
a missing permit / a permit [had been lost in the post|was missing]
a legal dispute / [neighbours had gone to court|two firms sued each other]
rising prices / steel and timber had become [much dearer|too expensive]
old pipes in the ground / nobody knew about the old pipes [in the ground|under the site]
"""),
    },
    """
hook: [Children waved paper flags|A brass band played out of tune] and {some_number} balloons rose into the
    sky.
hook: There were more speeches than usual, [said|sighed] {elder}, {age}, [who listened to all of them|a
    {trade}].
lead(what, where): [Since {day}|Since this week] the people of {town} have had {thing.long}.
lead(where): Mayor {mayor} cut a [red|blue|yellow] ribbon in {town} on {day}, [and the crowd cheered|in
    pouring rain].
lead(what, where, late): {delay} months [later than planned|behind schedule], {thing.long} [opened|welcomed
    its first visitors] in {town}.
what: What [people|visitors] [see|get] is {thing.long}.
what: [Behind the fence stood what|At last there it was, what] so many had [waited|asked] for: {thing.long}.
where: "[{town} has earned this|This is a great day for {town}]," the mayor [said|told the crowd].
late: It should have [opened|been ready] {delay} months [ago|earlier].
late: The [opening|ceremony] had been [put off|postponed] by {delay} months.
why: Work had dragged on [because|since] {why.long}.
why: The [reason for the delay|trouble]: {why.long}.
cost: The final bill [came to|is] {cost} million euros.
cost: The town [paid|has spent] {cost} million euros [on it|in all].
free?: Nobody has to pay to [use it|get in] [before the end of|until the last day of] {end}.
free?: Until the end of {end} there is no [charge|entrance fee].
aside: The first [plans|drawings], by {other}, [date from {past_year}|were rejected in {past_year}].
aside: The first [in the queue|visitor] was {visitor}, a {trade} from {far_town}, who had been up since five.
aside: A [coin|newspaper] from {past_year} was [walled in|found] under the first stone.
aside: In {other_town} people have been waiting for the same thing since {late_year}.
close: The [evening|day] ended with [fireworks|soup for everyone] on {some_street}.
summary: {thing.short} has opened in {town}, {delay} months late because of {why.short}. It cost {cost}
    million euros<free: and is free until the end of {end}>.
summary: {town} has opened {thing.short} for {cost} million euros after {why.short} caused a delay of {delay}
    months.<free: Entry is free until the end of {end}.>
""",
    common={},
    passing=w.PASSING,
)

MATCH = scenario(
    "match",
    {
        "winner": w.made_of(w.PLACE_STARTS, w.PLACE_ENDS, " ", w.TEAMS),
        "loser": w.made_of(w.PLACE_STARTS, w.PLACE_ENDS, " ", w.TEAMS),
        "rival": w.made_of(w.PLACE_STARTS, w.PLACE_ENDS, " ", w.TEAMS),
        "score": w.score(0, 3),
        "scorer": w.person(),
        "minute": w.figure(51, 89),
        "rank": w.one_of("first", "second", "third", "fourth", "fifth", "sixth", "seventh"),
        "crowd": w.number(800, 9500, step=10),
    },
    """
hook: [It had rained all morning|The pitch was frozen hard] and the [tea|soup] stall did good business.
hook: {crowd} [spectators|people] had [come|found their way] to the [ground|stadium].
lead(result): {loser} [had no answer to|were no match for] {winner} and [went down|lost] {score} [at
    home|after a poor start].
lead(result): {winner} [left the pitch as winners|took all three points] against {loser}: [it ended|the final
    score was] {score}.
lead: {winner} and {loser} [met|faced each other] at last [in a match that had everything|for a place in the
    cup].
result: [When the whistle blew|After ninety minutes] {winner} had won {score}.
result: {winner} [deserved their {score} win|were the better side and won {score}] over {loser}.
goals: {scorer} [scored|got] {score.whole}.
goals: {score.whole} came from {scorer}[|, with the left foot|, who is only nineteen].
rank?: The [winners|victors] [are now {rank} in the table|have climbed to {rank} place].
rank?: That puts {winner} in {rank} place.
injury?: Bad news for the [losers|beaten side]: their captain [broke a leg|tore a muscle] in minute {minute}.
injury?: In minute {minute} the captain of {loser} was carried off [with a broken leg|with a torn muscle].
aside: {rival} and {far_town} [drew|are level on points] [in the other match|at the bottom of the table].
aside: Coach {other}, {age}, [wore the lucky scarf|refused to speak to reporters] as [always|usual].
aside: Referee {visitor} showed [five yellow cards|no card at all][| and was booed].
aside: In {past_year} the two clubs [shared a bus|were still one team], {elder} of the fan club [recalled|told
    us].
close: The next match is [at {far_town}|against {rival}] on {some_day}.
summary: {winner} beat {loser} {score}, with {scorer} scoring {score.part}.<rank: They are now {rank} in the
    table.><injury: The captain of {loser} was injured.>
summary: {scorer} scored {score.part} as {winner} won {score} against {loser}<rank: and moved into {rank}
    place>.<injury: {loser} lost their captain to an injury.>
""",
    common={},
    passing=w.PASSING,
)

FIND = scenario(
    "find",
    {
        "town": w.town,
        "road": w.street,
        "day": w.weekday(),
        "leader": w.person(),
        "old": w.number(200, 3000, step=100),
        "thing": w.table("""
short / long
a Roman mosaic / a mosaic [showing two dolphins|of blue and white stones] from Roman times
a chest of silver coins / a chest [filled with|full of] silver coins
a wooden boat / a boat [carved from|made of] a single oak
a king's grave / a grave that [must have been|was] that of a king
a potter's kiln / a kiln in which a potter [once worked|fired bowls]
a row of cellars / cellars that nobody knew [existed|about]
a bronze sword / a sword of bronze, [still sharp|broken in two]
"""),
        "finder": w.table("""
short / long
a plumber / a plumber [laying|repairing] a pipe
two children / two children [looking for worms|playing at pirates]
a farmer / a farmer [ploughing|with a new plough]
a dog / a dog [digging for a bone|that would not stop digging]
builders / builders [digging a cellar|at work on a garage]
"""),
        "place": w.table("""
short / long
the town museum / the [museum in the town hall|town's own museum]
the university / the [university's|professors'] laboratory
the old school / the [old school|schoolhouse], which is empty
the castle / the [castle|castle on the hill]
"""),
    },
    """
hook: {some_street} has seen [its share of holes|many a treasure hunter], but never anything [like this|of the
    kind].
hook: Old people in the region have always [talked of|told stories about] something under the ground.
lead(where): [Work has come to a halt|There is a tent over the hole] [on|in] {road} in {town}, and for good
    reason.
lead(what, where): In {town}, there is news from below [the ground|the pavement] on {road}: {thing.long}.
lead(what, finder, where): It was {finder.long} who [hit upon|came across] it: {thing.long}, [right
    under|below] {road} in {town}.
what: [What came up|What lay under the mud] is {thing.long}.
what: [Experts|Archaeologists] speak of {thing.long}.
where: It [was|lay] [in|under] {road} in {town}[|, two metres down].
finder: [It was first seen by|It owes its discovery to] {finder.long}[| on {day}].
finder: The [honour|credit] goes to {finder.long}.
age: It is thought to be {old} years old, said {leader}, who [leads|is in charge of] the dig.
age: {leader} of the [heritage office|university] puts its age at {old} years.
next?: From {some_month} it [can be seen|will be on show] in {place.long}.
next?: It will be [taken to|kept in] {place.long}.
aside: The last find of this kind was made near {other_town} in {past_year}[| and sold abroad].
aside: {other}, {age}, had parked a car on the spot for {some_number} years.
aside: [A thief|Someone] from {far_town} was [sent away|caught] with a metal detector [last {some_day}|the
    same night].
aside: In {past_year} a {trade} called {elder} [dug|searched] here for weeks and found {some_number}
    [bottles|horseshoes].
close: The road will be [filled in|open] again [by {some_day}|in {some_month}].
summary: {finder.short} found {thing.short} on {road} in {town}. It is about {old} years old<next: and will be
    shown in {place.short}>.
summary: {thing.short}, about {old} years old, was discovered by {finder.short} on {road} in {town}<next: and
    will go to {place.short}>.
""",
    common={},
    passing=w.PASSING,
)

GOOD_CAUSE = scenario(
    "good cause",
    {
        "hero": w.person(),
        "town": w.town,
        "goal": w.town,
        "km": w.figure(60, 980),
        "sum": w.number(2000, 48000, step=100),
        "days": w.number(3, 40),
        "deed": w.table("""
short / long
cycling {km} kilometres / [rode a bicycle for {km} kilometres|spent {km} kilometres in the saddle]
walking {km} kilometres / [covered {km} kilometres on foot|put one foot before the other for {km} kilometres]
baking {km} cakes / [baked {km} cakes|took {km} cakes out of the oven]
selling {km} paintings / [painted and sold {km} pictures|found buyers for {km} paintings]
repairing {km} bicycles / [got {km} old bicycles going again|mended {km} bicycles]
knitting {km} pairs of socks / [knitted {km} pairs of socks|turned wool into {km} pairs of socks]
"""),
        "cause": w.table("""
short / long
the children's hospital / the children's hospital [gets|will have] the money
a new lifeboat / a lifeboat [can be bought|is to be paid for] with it
the animal shelter / the money goes to the [shelter for cats and dogs|animal shelter]
the school kitchen / a kitchen for the school [will be paid for|can now be built]
a music school / the money [is for|will help] a school of music
the fire brigade / the fire brigade will [receive|get] every cent
"""),
        "why": w.table("""
short / long
a bet / it all began with a bet
a friend's illness / a friend had [fallen|been] ill
boredom / [{hero.he} was bored after retiring|there was nothing on television]
a promise / {hero.he} had once promised [a neighbour|an aunt] to do it
"""),
    },
    """
hook: [Blisters, cold nights and burnt fingers|Doubters and bad weather] could not [stop|change] a thing.
hook: "[You will give up by {some_day}|That is madness]," [the neighbours said|said {elder}, a {trade}].
lead(who, deed): {hero} of {town} [has done it|kept going to the end]: in {days} days, {hero.he} {deed.long}.
lead(who): [Everyone on {some_street} knows the name now|A crowd was waiting on {some_street}]: {hero} from
    {town} is the [hero|talk] of the week.
lead(who, sum): {hero}, who lives in {town}, has [handed over|collected] {sum} euros.
who: [The name of the hero is|Behind it is] {hero}, who [lives|has always lived] in {town}.
deed: {hero.he} {deed.long}, [as {hero.he} likes to tell|which took {days} days].
deed: In {days} days, {hero.he} {deed.long}.
sum: [It brought in|That raised|The collection tin held] {sum} euros.
sum: [Friends|Strangers] gave {sum} euros in all.
cause: [As announced|All the promises were kept]: {cause.long}.
cause: And what happens now? {cause.long}.
why?: The [reason|story behind it]: {why.long}.
why?: Asked for a reason, {hero.he} said that {why.long}.
aside: {other} from {other_town} tried the same in {late_year} and [stopped|gave up] after {some_number}
    hours.
aside: The mayor of {far_town} [sent flowers|promised a medal, which has not come].
aside: The record, set by {visitor} in {past_year}, [still stands|is much higher].
aside: A {trade} from {far_town} [lent a tent|gave {some_number} pots of jam] to help.
close: Next [year|summer], {hero.he} wants to [rest|stay at home].
summary: {hero} from {town} raised {sum} euros for {cause.short} by {deed.short}<why: . It started with
    {why.short}>.
summary: By {deed.short}, {hero} of {town} has raised {sum} euros for {cause.short}<why: because of
    {why.short}>.
""",
    common={},
    passing=w.PASSING,
)

SCENARIOS: tuple[Scenario, ...] = (COUNCIL, OPENING, MATCH, FIND, GOOD_CAUSE)

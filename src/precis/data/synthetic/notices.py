"""Scenarios of the synthetic corpus: notices of firms and public services."""

from __future__ import annotations

from precis.data.synthetic import words as w
from precis.data.synthetic.grammar import Scenario, scenario

ASIDES = scenario(
    "side remarks",
    {},
    """
aside: A longer version, with pictures by {other}, [is on display|can be read] at our branch in {far_town}.
aside: [Thank you to|Our thanks go to] {visitor} of {some_company} for the [photographs|cake and coffee].
aside: Please note our new address: {some_number} {some_street}, {far_town}.
aside: {elder}, who [has been with us|has worked here] since {past_year}, [retires in {some_month}|sends
    greetings].
aside: This text was [written|checked] by {other}; [misprints|mistakes] can be reported at desk {some_number}.
aside: The [staff party|open day] on {some_day} [will go ahead|has been moved to {some_month}].
aside: In {late_year} we moved our archive from {far_town} to {other_town}, [a good decision|which took
    {some_number} days].
""",
    common={},
    passing=w.PASSING,
).frames["aside"]
"""Side remarks that fit any notice."""

OUTAGE = scenario(
    "outage",
    {
        "firm": w.company("Networks", "Utilities", "Services", "Works"),
        "town": w.town,
        "day": w.weekday(),
        "end": w.clock(12, 23),
        "start": w.clock(1, 11),
        "homes": w.number(300, 9900, step=10),
        "credit": w.number(5, 40),
        "service": w.table("""
short / gone
electricity / [the power has been off|the lights have been out]
tap water / [no water comes out of the taps|taps have run dry]
internet access / [nobody can get online|pages no longer load]
phone service / [calls cannot be made|every line is dead]
heating / [radiators stay cold|there is no hot water in the pipes]
mobile reception / [mobile phones find no signal|mobile phones are silent]
"""),
        "cause": w.table("""
short / long
a cut cable / [an excavator|a digger] [cut|tore] through a cable
a flooded pumping station / a pumping station [is under water|has flooded]
a software error / a new version of the software [contained an error|did not work as planned]
a fallen tree / a tree [came down on our equipment|fell across the line]
a burnt-out transformer / a transformer [burnt out|caught fire]
thieves who took copper / [thieves helped themselves to our copper|copper was stolen overnight]
"""),
    },
    """
hook: First of all: [do not worry|please do not call the fire brigade], [our staff are on the road|we know
    about it].
hook: [Our line is busy|Some {some_number} callers are waiting on the line], so here is what we know.
lead(what): Since {start} {service.gone} in [parts of |]{town}, {firm} [reports|announces].
lead(where): {firm} [apologises to its customers|asks for patience] in {town}, where {homes} households are
    [affected|waiting].
lead(what, cause): {service.gone} in {town} because {cause.long}, [says|according to] {firm}.
what: What has happened: {service.gone}.
what: Since {start} {service.gone}.
where: [Affected are|The fault has reached] {homes} households.
cause: The [cause was soon found|reason]: {cause.long}.
cause: {cause.long}, our [engineers|technicians] found.
end: [We expect everything to work again|Repairs should be finished] by {end}.
end: The fault [will be put right|should be gone] by {end}.
money?: Everyone affected will [get|find] {credit} euros [back|off the next bill].
money?: We will [pay back|refund] {credit} euros per household.
aside: In {late_year} a similar fault in {other_town} [lasted {some_number} hours|was over in minutes].
aside: There is hot tea for [everyone|old people] at the school on {some_street}.
aside: {other} of our hotline [answered {some_number} calls before lunch|has worked through two nights].
aside: Our new [office|shop] in {far_town} will [still open|open as planned] on {some_day}.
close: We [will report again|thank you for your patience], {visitor}, [spokesperson|customer service].
summary: {homes} households in {town} are without {service.short} because of {cause.short}. {firm} expects to
    repair the fault by {end}<money: and will refund {credit} euros>.
summary: {cause.short} left {homes} households in {town} without {service.short}; it should be back by
    {end}.<money: {firm} will pay each household {credit} euros.>
""",
    common={},
    passing=w.PASSING,
)

RECALL = scenario(
    "recall",
    {
        "firm": w.company("Home", "Products", "Trading", "Works", "Goods"),
        "name": w.product(2, 90),
        "plugged": w.one_of(
            "toaster",
            "hair dryer",
            "lamp",
            "heating blanket",
            "coffee machine",
            "kettle",
            "drill",
            "iron",
            "mixer",
        ),
        "toy": w.one_of(
            "scooter", "baby chair", "doll", "rocking horse", "garden swing", "toy crane", "pram", "sledge"
        ),
        "sold": w.number(300, 48000, step=100),
        "hurt": w.number(2, 9),
        "until": w.date(),
        "fault": w.table("""
thing / short / long
{plugged} / they can catch fire / [flames may come out of it|it has gone up in flames in some cases]
{plugged} / they can give electric shocks / [users may get an electric shock|current can reach the handle]
{plugged} / they get too hot / it [overheats after a few minutes|becomes far too hot]
{toy} / they may break / a [screw|joint] can [come loose|snap] without warning
{toy} / they contain lead / [traces of lead were found in the paint|the paint contains lead]
{toy} / small parts can come off / children could swallow [parts that come off|loose parts]
"""),
        "offer": w.table("""
short / long
their money back / the full price will be [refunded|paid back]
a replacement / we will [send another one|exchange it free of charge]
a voucher / [a voucher|a gift card] is waiting for you
a free repair / we will [repair it at no cost|put it right free of charge]
"""),
    },
    """
hook: [Safety comes first|Your safety matters to us], [says|writes] {elder}, [head of quality|who signs every
    letter].
hook: {some_number} years without a complaint: that [was|had been] our record[| until {some_month}].
lead(what): {firm} [is calling back|asks for the return of] the {fault.thing} {name}.
lead(what, fault): Do you own the {fault.thing} {name} by {firm}? Please [stop using it|unplug it at once]:
    {fault.long}.
lead(what, sold): All {sold} pieces of the {fault.thing} {name} have to [go|come] back to {firm}.
what: The [product|model] in question is the {fault.thing} {name} [by|made by] {firm}.
fault: Tests [showed|have shown] the [danger|problem]: {fault.long}.
fault: The reason is [serious|simple]: {fault.long}.
sold: {sold} pieces [were sold|have left the factory].
sold: It stands in {sold} homes.
hurt?: {hurt} customers [were hurt|had to see a doctor].
hurt?: We know of {hurt} people who [were|have been] injured.
offer: Bring it back by {until} and {offer.long}.
offer: {offer.long} if it reaches [the shop|us] by {until}.
aside: Other models, such as the {other_name}, are [safe|not affected].
aside: The [factory in {far_town}|supplier, {some_company},] has [not been used since {late_year}|promised to
    help].
aside: In {past_year} {some_company} [called back {some_number} lorries|had to close for the same reason].
aside: [A hotline|An office] has been set up in {other_town} under {visitor}, [who used to be a {trade}|aged
    {age}].
close: We are sorry, {other}, [director|managing director].
summary: {firm} is recalling {sold} units of the {fault.thing} {name} because {fault.short}.<hurt: {hurt}
    people were injured.> Buyers get {offer.short} until {until}.
summary: {sold} {fault.thing}s of the type {name} are recalled by {firm} because {fault.short}<hurt: and have
    hurt {hurt} people>. Owners can get {offer.short} until {until}.
""",
    common={"other_name": w.product(2, 90)},
    passing=w.PASSING,
)

QUARTER = scenario(
    "quarter",
    {
        "firm": w.company("Group", "Trading", "Industries", "Works", "Stores", "Brands"),
        "sales": w.figure(12, 480, tenths=True),
        "percent": w.figure(2, 29),
        "boss": w.person(),
        "town": w.town,
        "jobs": w.number(20, 900, step=10),
        "part": w.one_of("first", "second", "third", "fourth"),
        "why": w.table("""
short / up
strong demand for {goods} / customers [wanted|bought] more {goods} than ever
a new factory / the new factory [now works|is running] day and night
lower energy prices / energy [became cheaper|cost less]
orders from abroad / [foreign buyers|customers abroad] placed big orders
"""),
        "bad": w.table("""
short / down
weak demand for {goods} / [hardly anybody wanted|customers bought less of the] {goods}
a strike / workers [walked out|were on strike] for weeks
high energy prices / energy [has become so dear|cost more than planned]
a lost order / [a large customer|the biggest buyer] cancelled an order
"""),
        "goods": w.one_of(
            "winter coats", "lenses", "noodles", "spare parts", "labels", "pumps", "paints", "boots"
        ),
    },
    """
hook: [The coffee was cold|There were sandwiches], but [the room was full|nobody left early] when {firm} [met
    the press|reported].
hook: {elder}, {age}, who owns {some_number} shares, [took a seat in the first row|asked the first question].
lead: {firm} [published|presented] its figures for the {part} quarter [on {some_day}|this week].
lead(up): {boss}, who runs {firm}, [could hardly stop smiling|had reason to smile]: [because|as] {why.up},
    sales grew by {percent} percent in the {part} quarter.
lead(sales): {firm} [took in|earned] {sales} million euros in the {part} quarter.
up: Sales [went up|rose|climbed] by {percent} percent, as {why.up}.
up: Compared with last year, sales are {percent} percent higher. The [reason|explanation]: {why.up}.
down!up: Sales [fell|went down|dropped] by {percent} percent, as {bad.down}.
down!up: [That is {percent} percent less than|It means a drop of {percent} percent from] a year ago, because
    {bad.down}.
sales: [Takings|Sales] in the {part} quarter [came to|reached] {sales} million euros.
sales: The books show [sales|an income] of {sales} million euros.
hire?: In {town} {jobs} [new jobs will be created|people will be taken on].
hire?: {boss} [plans|wants] to [hire|take on] {jobs} people in {town}.
aside: The [company|firm] was founded in {past_year} by {visitor}, [a {trade}|who sold it in {late_year}].
aside: Its rival {some_company} [reports|will report] on {some_day} and [hopes for|expects] {some_number}
    million.
aside: {other} [joined|left] the board after {some_number} years[| and now lives in {far_town}].
aside: Rumours of a move to {other_town} were [denied|called nonsense].
close: The next figures [are due|will be published] in {some_month}.
summary: Sales at {firm} <up: rose><down: fell> by {percent} percent to {sales} million euros in the {part}
    quarter because of <up: {why.short}><down: {bad.short}>.<hire: The firm plans {jobs} new jobs in {town}.>
summary: {firm} had sales of {sales} million euros in the {part} quarter, {percent} percent <up: more><down:
    less> than a year ago, owing to <up: {why.short}><down: {bad.short}>.<hire: It will hire {jobs} people in
    {town}.>
""",
    common={},
    passing=w.PASSING,
)

TRAIN = scenario(
    "train",
    {
        "from_": w.town,
        "to": w.town,
        "last": w.date(),
        "minutes": w.figure(15, 95),
        "trains": w.number(11, 60),
        "firm": w.company("Rail", "Lines", "Railways"),
        "why": w.table("""
short / long
track repairs / [rails and sleepers are being replaced|the track is being renewed]
a strike / train drivers [are on strike|have stopped work]
a landslide / [earth and stones have buried the track|a slope has slid onto the track]
a damaged bridge / a [lorry|barge] has [rammed|damaged] a bridge
a shortage of staff / too many drivers are [ill|on sick leave]
flooding / [the track is under water|the river has washed out the track]
"""),
        "instead": w.table("""
short / long
buses / [buses will take their place|passengers can use buses]
trams / [tickets are valid on trams|passengers may take the tram]
a ferry / a ferry will [carry passengers|take passengers across]
"""),
    },
    """
hook: [Patience is a virtue|Take a good book with you], [the conductor on the early train joked|as {elder}, a
    {trade}, says].
hook: [The platform was full|Nobody could find a seat] at {far_town} [this morning|on {some_day}], and [not by
    chance|for a reason].
lead(line): {firm} has bad news for travellers between {from_} and {to}.
lead(line, why): Between {from_} and {to} {why.long}, [writes|announces] {firm}.
lead(line, cut): No train runs between {from_} and {to} [at present|for now], {firm} [says|announces].
line: The [stretch|line] in question is the one from {from_} to {to}.
cut: [All trains are cancelled|Not a single train will run], day and night.
cut: There will be no trains at all, not even at weekends.
slow!cut: Trains will be {minutes} minutes late[| on average].
slow!cut: The journey [takes|lasts] {minutes} minutes longer.
why: The reason: {why.long}.
why: {why.long}, a [spokeswoman|spokesman] explained.
until: [This will not change before|It will go on until] {last}.
until: [The timetable is|Things will be] back to normal on {last}.
instead?: [In the meantime|Until then] {instead.long}.
instead?: From platform {platform} {instead.long}.
aside: {other}, {age}, who [commutes|travels every day] from {far_town}, has [bought a bicycle|written
    {some_number} letters].
aside: The line, [opened|built] in {past_year}, carries {some_number} trains a day.
aside: Trains to {other_town} [run as usual|are not affected].
aside: In {late_year} [snow|a herd of cows] stopped trains near {far_town} for {some_number} hours.
aside: The kiosk at {other_town} station is [closed|for sale], by the way.
close: [Questions are answered|A hotline is open] [until {some_day}|at the {far_town} office].
summary: <cut: No trains run><slow: Trains run {minutes} minutes late> between {from_} and {to} until {last}
    because of {why.short}.<instead: Passengers can take {instead.short}.>
summary: Because of {why.short}, trains between {from_} and {to} are <cut: cancelled><slow: {minutes} minutes
    late> until {last}.<instead: {firm} offers {instead.short}.>
""",
    common={"platform": w.figure(1, 19)},
    passing=w.PASSING,
)

EVENT = scenario(
    "event",
    {
        "town": w.town,
        "place": w.street,
        "date": w.date(),
        "time": w.clock(9, 20),
        "price": w.number(3, 35),
        "age_limit": w.number(11, 17),
        "star": w.person(),
        "what": w.table("""
short / long / act
a jazz festival / [three stages full of jazz|a weekend of jazz] / plays the [saxophone|trumpet]
a book fair / [a fair for people who love books|long tables full of books] / reads from a new novel
a chess tournament / [a tournament for chess players|chess at long tables] / plays against all comers
a flower market / [a market full of roses and tulips|a market for flowers and seeds] / speaks about
    [bees|soil]
a street run / [a run through the old streets|a race for runners of all ages] / fires the starting gun
a science day / [a day of bangs and bright flashes|experiments for young and old] / shows [robots|a comet]
a cheese festival / [a festival for lovers of cheese|a hundred sorts of cheese] / opens the first barrel
"""),
        "where": w.table("""
short / long
in the park / on the grass of the park
in the castle / behind the castle walls
at the school on {place} / in the yard of the school on {place}
on the market square / between the arcades of the market square
on {place} / under the lanterns of {place}
"""),
    },
    """
hook: Do you have plans yet? If {elder} of {some_company} has a say, you soon will.
hook: Last year it [rained for two days, and still {some_number} people came|had to be called off when
    {some_number} tents blew away].
lead(what): {town} is [getting ready for|looking forward to] {what.long}.
lead(when): On {date} [it is best to come to|nobody should leave] {town}.
lead(what, when): {what.long}: that is what {town} [offers|promises] on {date}.
what: [Visitors|Guests] can [expect|look forward to] {what.long}.
when: The day to [remember|note down] is {date}.
when: [Everything|It all] takes place on {date}.
where: It will be held {where.long}.
where: You will find us {where.long}.
start: [The gates open|It starts] at {time}.
start: [From {time} on|At {time}] [everyone is welcome|the gates stand open].
price: [A ticket costs|Admission is|You pay] {price} euros.
free!price: [Nobody has to pay|There is no entrance fee].
free!price: You can leave your purse at home: it costs nothing.
star?: The guest of honour is {star}, who {what.act}.
star?: {star} [comes too|is the special guest] and {what.act}.
aside: [Dogs must stay outside|Bicycles can be left on {some_street}], [as in {late_year}|please].
aside: The idea came from {other}, a {trade}, [on a visit to {far_town}|back in {past_year}].
aside: {other_town} has [a similar event|something like it] [in {some_month}|since {late_year}], but it is
    [smaller|dearer].
aside: {some_number} helpers [under {visitor}|from {far_town}] have [baked|painted signs] since {some_day}.
aside: Parking is [scarce|free] on {some_street}; bus {some_number} stops at the gate.
close: We look forward to seeing you, {visitor}[| and the whole team].
summary: {town} is holding {what.short} {where.short} on {date} at {time}. <price: Tickets cost {price}
    euros><free: Entry is free>.<star: {star} will be a guest.>
summary: {what.short} takes place {where.short} in {town} on {date} from {time}<price: and costs {price}
    euros><free: and is free of charge>.<star: {star} is the special guest.>
""",
    common={},
    passing=w.PASSING,
)

SCENARIOS: tuple[Scenario, ...] = (OUTAGE, RECALL, QUARTER, TRAIN, EVENT)

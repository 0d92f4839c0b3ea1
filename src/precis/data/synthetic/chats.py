"""Scenarios of the synthetic corpus: dialogues among friends who ask, offer and agree on something."""

from __future__ import annotations

from precis.data.synthetic import words as w
from precis.data.synthetic.grammar import Scenario, scenario
from precis.data.synthetic.plans import COMMON, PASSING

BORROW = scenario(
    "borrow",
    {
        "camping": w.one_of("tent", "sleeping bag", "kayak", "raincoat", "gas cooker", "rucksack", "camera"),
        "festive": w.one_of("black dress", "suit", "guitar", "projector", "cake tin", "accordion", "big pot"),
        "tool": w.one_of("drill", "ladder", "bike trailer", "saw", "paint roller", "toolbox", "wheelbarrow"),
        "day": w.weekday(),
        "back": w.weekday(),
        "owner": w.speaker(),
        "why": w.table("""
thing / short / long
{camping} / a festival / I'm going to a festival
{camping} / a weekend at the lake / we're spending a weekend at the lake
{camping} / a school trip / {kid} has a school trip
{festive} / a wedding / I'm invited to a wedding
{festive} / a school play / it's for the school play
{festive} / a birthday party / it's for {kid}'s birthday party
{tool} / the garden / I want to do something about the garden
{tool} / the new flat / I'm doing up the new flat
"""),
        "kid": w.speaker(),
    },
    """
lead: a) [Hi|Hello] {b}, do you still have [that|your] {why.thing}?
    b) [Yes, why?|I do, it's in the cellar.|Somewhere, yes.]
lead: a) {b}!! [Quick question|Emergency]: [could I|can I] borrow your {why.thing}?
    b) [What for?|Sure, what's it for?]
why: a) {why.long} on {day}[, that's why| and I don't have one].
    b) [I see|Ah], [sounds fun|nice].
why: b) [Tell me more|When do you need it]?
    a) On {day}. {why.long}.
yes: b) [You can have it|Take it], but I need it back [by|before] {back}.
    a) [Promise|Of course]! [Thank you!|You're an angel.]
yes: a) I'd [return it|bring it back] on {back}.
    b) [No hurry, but okay|Deal]. [It's yours|Come and get it].
no!yes: b) [Oh dear|Bad luck], I [lent|gave] it to {owner} [last week|ages ago].
    a) Oh no :(
    b) [Ask {owner.him}|Why don't you ask {owner.him}], {owner.he} must have finished with it.
    a) [Good idea|Okay], I'll do that.
no!yes: b) [Sorry|Ah], I sold it. But {owner} has one!
    a) [Great!|Really?] I'll ask {owner.him} [tonight|right away].
care?yes: b) And please [be careful|clean it], it was [expensive|a present].
    a) [Will do|Of course].
aside: b) {other} from {far_town} still has my [pump|best pan], since {some_year}!
    a) [Seriously?|People are strange.]
aside: a) The shop in {some_street} wants {some_number} euros a day.
    b) [That's crazy|Wow, no].
close: a) Thanks :)
    b) [You're welcome|No problem]!
summary: <yes: {b} is lending {a} a {why.thing} for {why.short} on {day}. {a} has to return it by {back}.><no:
    {a} needs a {why.thing} for {why.short} on {day}, but {b} does not have it. {a} will ask {owner}.>
summary: <yes: {b} will lend {a} a {why.thing} until {back}, which {a} needs for {why.short} on {day}.><no:
    {b} cannot lend {a} a {why.thing} for {why.short} on {day}, so {a} will ask {owner} instead.>
""",
    common=COMMON,
    passing=PASSING,
)

GIFT = scenario(
    "gift",
    {
        "hero": w.speaker(),
        "day": w.weekday(),
        "each": w.number(5, 40),
        "event": w.table("""
short / long
birthday / has a birthday
wedding / is getting married
farewell party / is leaving us
exam party / is having an exam party
"""),
        "first": w.one_of("a book", "a plant", "a scarf", "a vase", "a board game", "a cookbook", "a mug"),
        "gift": w.one_of(
            "concert tickets",
            "a hammock",
            "a coffee machine",
            "a telescope",
            "a rucksack",
            "a dance course",
            "a radio",
            "a pottery class",
            "headphones",
            "a picnic basket",
            "a record player",
            "a hot-air balloon ride",
        ),
    },
    """
lead: a) {hero} {event.long} on {day}! [Do we have|Have you got] [a present|anything] yet?
    b) [No|Not yet|Oh no, I forgot]!
lead: c) [Help|Guys], what do we [give|get] {hero}? {hero.he} {event.long} on {day}.
    a) [Hm, good question|I've been thinking about that too].
first?: b) [Maybe|What about|How about] {first}?
    c) [Boring!|Again?] [We gave {hero.him} that last year|{hero.he} has three of those].
    b) [True|Right].
first?: c) I [thought of|saw] {first}.
    a) [Hm, not really {hero.his} thing|I don't know...].
idea: a) [I'd say|What about] {gift}? {hero.he} [talks about nothing else|would love that].
    b) [Great|Perfect], [yes|{gift}]!
idea: b) [Got it|I know]: {gift}!
    c) [Brilliant|Wow, yes]!
    a) [Agreed|I love it].
money: a) That's {each} euros each, [if that's okay|not more].
    c) [Fine with me|Okay].
money: c) If [we all pay|everyone gives] {each} euros, [it works|that's enough].
    b) [Deal|I'm in].
buyer: b) I'll [buy it|get it|order it] [tonight|today].
    a) [Thanks|Great], {b}!
buyer: a) Who [buys|orders] it?
    b) I can do that.
card?: c) And I'll [make|write] a card.
    a) [Lovely|Nice].
aside: c) For {other} we spent {some_number} euros on {far_town} cheese.
    b) [Haha|Never again], I remember.
aside: a) {friend} [isn't coming|can't come], {friend.he} is in {far_town} until {some_day}.
    b) [What a pity|Shame].
close: a) And not a word to {hero}!
    b) [Of course not|My lips are sealed] ;)
summary: {a}, {b} and {c} will give {hero} {gift} for {hero.his} {event.short} on {day}. Each pays {each}
    euros and {b} will buy it<card: , while {c} makes a card>.
summary: For {hero}'s {event.short} on {day}, {b} is buying {gift}. {a}, {b} and {c} pay {each} euros
    each.<card: {c} will write a card.>
""",
    common=COMMON,
    passing=PASSING,
)

LOST = scenario(
    "lost and found",
    {
        "place": w.one_of(
            "the gym",
            "the cafe in {road}",
            "{host}'s place",
            "the library",
            "the pool",
            "the {road} bakery",
            "the bus to {goal}",
            "the cinema",
            "the tennis club",
        ),
        "road": w.street,
        "host": w.speaker(),
        "goal": w.town,
        "thing": w.table("""
short / look / pocket
scarf / red / the hall
wallet / brown / my other coat
umbrella / green / the office
notebook / small / my school bag
jacket / blue / the car
phone / black / the kitchen
key ring / silver / the drawer
hat / woollen / the wardrobe
"""),
        "time": w.clock(9, 20),
        "day": w.weekday(),
    },
    """
lead: a) [Oh no|Help], {b}, I can't find my {thing.short}!
    b) The {thing.look} one? [Where did you last have it|When did you last see it]?
lead: a) {b}, did I leave my {thing.short} [with you|in your car]? It's {thing.look}.
    b) [Let me look|One moment]... no, [sorry|nothing here].
lead: b) Why [so quiet|the sad face] today, {a}?
    a) My {thing.short} is gone, the {thing.look} one :(
search?: b) [Did you check|Have you looked in] {thing.pocket}?
    a) [Yes, twice|First thing I did].
found: b) [Wait|Hey]! [I was at|I've just called] {place}: they [have it|found it]!
    a) [Really|No way]?! [I could hug you|What a relief]!
found: a) [Maybe|I was at] {place} [on {some_day}|yesterday]...
    b) [I'll ask|Let me call them].
    b) They [have it|found it under a chair]!
    a) [Yay|Phew], thank you!
self: b) [You can pick it up|They keep it for you] until {time} on {day}.
    a) [I'll go there|I'll get it] [after work|in time].
self: a) When can I get it?
    b) [By|Before] {time} on {day}.
    a) [On my way|I'll be there].
fetch!self: b) I'm [nearby|going there anyway], [shall I get it for you|I can fetch it]?
    a) [That would be great|Yes please]!
    b) I'll [bring it over|be at yours] on {day} at {time}.
fetch!self: a) I'm stuck [at work|in bed]. Could you get it?
    b) [Sure|Okay], I'll bring it on {day}, [around|at] {time}.
aside: b) {other} once lost {other.his} [ring|watch] in {far_town} and found it {some_number} weeks later.
    a) [In a cake?|Lucky {other}.]
aside: a) I paid {some_number} euros for it in {far_town}!
    b) [Oh wow|Don't tell me].
close: a) I owe you [one|a coffee]!
    b) [Two|With cake], please :D
summary: {a} lost {a.his} {thing.look} {thing.short}, but it was found at {place}. <self: {a} can collect it
    until {time} on {day}.><fetch: {b} will bring it to {a.him} on {day} at {time}.>
summary: {b} has found out that {a}'s {thing.short} is at {place}. <self: {a} must pick it up by {time} on
    {day}.><fetch: {b} will take it to {a.him} on {day} at {time}.>
""",
    common=COMMON,
    passing=PASSING,
)

SHIFT = scenario(
    "shift swap",
    {
        "day": w.weekday(),
        "other_day": w.weekday(),
        "start": w.clock(6, 14),
        "job": w.one_of(
            "bakery", "museum", "call centre", "clinic", "restaurant", "bookshop", "hotel", "pool", "zoo"
        ),
        "why": w.table("""
short / long
is ill / I've got [a fever|the flu]
has hurt {a.his} foot / I can't walk, I [fell off my bike|slipped on the stairs]
has to look after {kid} / {kid} is ill and can't go to kindergarten
has a dentist's appointment / my tooth is killing me, the dentist wants to see me
has a wedding to go to / my [cousin|aunt] is getting married
has an exam / they moved my exam
"""),
        "kid": w.speaker(),
        "third": w.speaker(),
    },
    """
lead: a) [Hey|Hi] {b}, are you at the {job} on {day}?
    b) [No, why?|I don't think so.]
lead: a) {b}, [I'm in trouble...|can you save me?] It's about my shift at the {job} on {day}.
    b) [What happened|What's wrong]?
lead: b) [How are you|How is life|All well], {a}?
    a) [Not so good|Could be better]. I have the {job} shift on {day} and can't do it.
why: a) {why.long}.
    b) [Oh dear|Oh no|I see].
why: b) [Why|What's the matter]?
    a) {why.long}.
yes: a) [Could|Would] you [do it|take over] for me? It starts at {start}.
    b) [Okay|Sure], {start}, [I'll be there|no problem].
yes: b) I can [do it|cover for you], [when do I|what time do I] have to be there?
    a) At {start}. [Thank you so much|You're a star]!
no!yes: a) [Could|Would] you [do it|take over] for me?
    b) I'd love to, but [I'm away|it's my mum's birthday]. [Ask|Try] {third}, {third.he} needs the money.
    a) [Good idea|Okay], I'll [call|ask] {third}.
pay?yes: a) I could [work for you|take your shift] on {other_day} [in return|if you like].
    b) [Great, I accept|That would be perfect].
aside: b) The boss was [furious|in a mood] on {some_day} because {other} came {some_number} minutes late.
    a) [Again?|Poor {other}!]
aside: a) {friend} left the job and [opened a bar in {far_town}|moved to {far_town}].
    b) [Good for {friend.him}|Brave].
close: b) Get some [rest|sleep]!
    a) Thanks :)
summary: {a} {why.short} and cannot work at the {job} on {day}. <yes: {b} will take the shift at {start}.><no:
    {b} has no time, so {a} will ask {third}.><pay: In return {a} will work on {other_day}.>
summary: <yes: {b} will replace {a} at the {job} on {day} at {start}><no: {b} cannot replace {a} at the {job}
    on {day} and suggests {third}> because {a} {why.short}.<pay: {a} will work for {b} on {other_day}.>
""",
    common=COMMON,
    passing=PASSING,
)

FILM = scenario(
    "film night",
    {
        "day": w.weekday(),
        "time": w.clock(17, 21),
        "film": w.made_of("The ", w.RESTAURANT_STARTS, " ", w.RESTAURANT_ENDS),
        "second": w.made_of("The ", w.RESTAURANT_STARTS, " ", w.RESTAURANT_ENDS),
        "why": w.table("""
short / long
too scary / I can't [sleep|watch] when it's scary
too long / it's three hours long
sold out / it says sold out on the website
too sad / I'd cry [the whole time|all night]
"""),
        "snack": w.one_of("crisps", "popcorn", "drinks", "a cake", "sandwiches", "nuts"),
    },
    """
lead: a) [Hi you two|Hello both], film night on {day}?
    b) [Yes|Finally|I'm in]!
    c) [Me too|Count me in]!
lead: c) [Are we doing something|Any plans] on {day}?
    a) [Let's watch a film|Film night], what do you think, {b}?
    b) [Yes|Good idea]!
film: a) I'd [like|love] to see {film}.
    c) [Great choice|My sister loved it].
film: b) How about {film}?
    a) [Fine|Okay].
other?: b) [Hm|Sorry], {why.long}. [What about|Can we take] {second}?
    c) [Also good|I like that even better].
    a) [Fine,|Then] {second}.
other?: c) Um, {why.long}.
    a) [Okay|Fair enough], then {second}?
    c) [Yes please|Thank you], {second}.
where: c) [My place|You can come to mine], {time}?
    b) [Works for me|Okay, {time}].
where: a) {c}, [can we|could we] meet at your place at {time}?
    c) [Sure|Of course], {time}.
food?: b) I'll bring {snack}.
    a) [Yum|Perfect].
food?: c) [Who brings|Can someone get] {snack}?
    b) [I will|Me].
aside: c) {other} saw it in {far_town} and [fell asleep|cried].
    a) [Haha|No spoilers]!
aside: a) The last one had {some_number} songs in it. [Never again.|I still hear them.]
    b) [Stop|Don't remind me].
close: a) See you then!
    c) [See you|Bye]!
summary: {a}, {b} and {c} will watch <other: {second} instead of {film}><!other: {film}> at {c}'s place on
    {day} at {time}.<food: {b} will bring {snack}.>
summary: {c} is hosting {a} and {b} on {day} at {time} to watch <other: {second}, as {film} is
    {why.short}><!other: {film}>.<food: {b} brings {snack}.>
""",
    common=COMMON,
    passing=PASSING,
)

SCENARIOS: tuple[Scenario, ...] = (BORROW, GIFT, LOST, SHIFT, FILM)

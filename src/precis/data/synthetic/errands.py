"""Scenarios of the synthetic corpus: dialogues about things to sell, to mend, to buy and to look after."""

from __future__ import annotations

from precis.data.synthetic import words as w
from precis.data.synthetic.grammar import Scenario, scenario
from precis.data.synthetic.plans import COMMON, PASSING

SALE = scenario(
    "sale",
    {
        "thing": w.one_of(
            "bike",
            "sofa",
            "desk",
            "piano",
            "tent",
            "old laptop",
            "pram",
            "bookcase",
            "aquarium",
            "surfboard",
            "sewing machine",
            "record player",
            "trampoline",
            "coffee table",
            "fridge",
            "camera",
        ),
        "asked": w.figure(80, 160),
        "bid": w.figure(21, 44),
        "price": w.figure(45, 79),
        "day": w.weekday(),
        "time": w.clock(9, 20),
        "road": w.street,
        "flaw": w.table("""
short / long
a scratch / there's a [small|long] scratch on one side
a loose screw / one screw is [loose|missing]
a stain / it has a [coffee|small] stain
a strange smell / it smells [a bit|of smoke]
"""),
    },
    """
lead: a) [Hi|Hello] {b}, is the {thing} [still for sale|still available|gone already]?
    b) [Yes, it's still here|No, you can have it|You are the first to ask].
lead: b) [Hi|Hello] {a}, you [wrote|asked] about my {thing}?
    a) [Yes|Right], [I'm interested|I'd like to buy it].
price: a) [How much do you want|What does it cost]?
    b) {asked} euros.
    a) [Would you take|How about] {bid}?
    b) [That's too little|No way, sorry]. {price} and it's yours.
    a) [Okay, deal|Fine, {price}].
price: b) I [want|was hoping for] {asked} euros.
    a) [Hm, that's a lot|That's more than I have]. {bid}?
    b) [Let's meet in the middle|My last word]: {price}.
    a) [Deal|Agreed]!
full!price: a) [How much do you want|What does it cost]?
    b) {asked} euros, [fixed price|and not a cent less].
    a) [Hm|Okay]... [fair enough|it's worth it]. I'll take it.
flaw?: a) Is there anything wrong with it?
    b) Well, {flaw.long}.
    a) [I can live with that|Doesn't matter].
flaw?: b) [To be honest|You should know], {flaw.long}.
    a) [Thanks for telling me|No problem].
when: a) [Can I|Could I] [come|fetch it] on {day}, [say|around] {time}?
    b) [Yes|Sure], I'm [at home|in]. {road}, [second floor|the yellow house].
when: b) [Come|Come round] on {day} at {time}. It's in {road}.
    a) [Perfect|Great], I'll be there.
aside: b) Someone called {other} [offered|promised] me {some_number} [pumpkins|fish] for it last {some_day}.
    a) [Seriously|Haha]?
aside: b) I bought it from {friend} in {far_town} in {some_year}.
    a) [Nice|Oh, I know that town].
aside: a) My {other_thing} broke down [after {some_number} days|last {some_day}].
    b) [Bad luck|Things don't last any more].
close: a) [Cash|I'll bring cash], [right|okay]?
    b) [Yes please|Cash is best].
summary: {a} is buying {b}'s {thing} for <price: {price} euros instead of {asked}><full: the full price of
    {asked} euros>.<flaw: It has {flaw.short}.> {a} will fetch it in {road} on {day} at {time}.
summary: {b} is selling {a} a {thing}<flaw: with {flaw.short}> for <price: {price} euros><full: {asked}
    euros>. {a} will come to {road} on {day} at {time}.
""",
    common={**COMMON, "other_thing": w.one_of("old one", "last one", "first one")},
    passing=PASSING,
)

REPAIR = scenario(
    "repair",
    {
        "road": w.street,
        "number": w.figure(2, 98),
        "day": w.weekday(),
        "time": w.clock(7, 18),
        "helper": w.speaker(),
        "since": w.weekday(),
        "fault": w.table("""
short / since / long / who
the heating is broken / the heating has been broken / the radiators [are ice cold|don't get warm] / plumber
the roof is leaking / the roof has been leaking / water [is dripping|drips] onto my bed / roofer
the tap does not close / the tap has been running / the tap [won't stop running|can't be turned off] / plumber
the lights do not work / the lights have not worked / [there's no light in any room|all lamps are dead] /
    electrician
the window is broken / the window has been broken / [the wind blows in through|somebody kicked a ball through]
    the window / glazier
the lock is stuck / the lock has been stuck / my key won't turn [any more|in the lock] / locksmith
there are mice in the kitchen / there have been mice in the kitchen / something [eats my bread at night|small
    runs over the stove] / pest controller
"""),
    },
    """
lead: a) Good [morning|evening], {b}, this is {a} from {road} {number}.
    b) [Hello|Good day], what can I do for you?
lead: b) Yes, {b} speaking?
    a) [Hello|Hi], {a} here, your tenant in {road} {number}.
    b) [What is it this time|How can I help]?
fault: a) [I'm afraid|I hate to complain, but] {fault.long}.
    b) Since when?
    a) [Since|It began on] {since}.
fault: a) It's [urgent|about the flat]: {fault.long}, and that since {since}.
    b) [Oh dear|That's not good].
visit: b) I'll [send|call] {helper}, the {fault.who}. [Would|Does] {day} at {time} [suit you|work]?
    a) [Yes|That's fine], [thank you|I'll be in].
visit: b) [I know a good {fault.who}|Our {fault.who} is called], {helper}. [Could be|Free] on {day} at {time}.
    a) [Good|Great], {day} at {time}.
wait!visit: b) I'll [send|call] {helper}, the {fault.who}. But not before {day}.
    a) [So late|Not before {day}]?!
    b) [There's nothing I can do|Everyone is ill], sorry.
key?: a) I'm [at work|out] then. The neighbour has [the key|a key].
    b) [Good to know|I'll tell {helper.him}].
rent?: a) [And I'd|Also, I'd] like to pay less rent [this month|until then].
    b) [That's only fair|Agreed].
rent?: b) You can [keep back|take off] a part of the rent[| this month].
    a) [That's kind|Thank you].
aside: b) The last tenant, {other}, [never complained|stayed for {some_number} months].
    a) [I see|Lucky you].
aside: b) I'm in {far_town} [until {some_day}|at the moment], the line is bad.
    a) Can you hear me?
    b) [Now, yes|Better].
close: b) [Anything else|Was that all]?
    a) No, [that's it|goodbye].
summary: {a} of {road} {number} tells {b} that {fault.since} since {since}. {b} will send {helper}, a
    {fault.who}, <visit: on {day} at {time}><wait: but not before {day}>.<rent: {a} may pay less rent.>
summary: As {fault.short} in {a}'s flat, {b} is sending {helper}, a {fault.who}, <visit: on {day} at
    {time}><wait: though not before {day}>.<key: A neighbour has the key.><rent: The rent will be lower.>
""",
    common=COMMON,
    passing=PASSING,
)

PETS = scenario(
    "pet sitting",
    {
        "pet": w.speaker(),
        "animal": w.table("""
short / long / food
cat / cat / a tin in the morning
dog / dog / a bowl of meat at night
rabbit / rabbit / hay and a carrot
parrot / parrot / seeds and half an apple
tortoise / tortoise / some lettuce
hamster / hamster / a spoon of grain
"""),
        "from_": w.weekday(),
        "to": w.weekday(),
        "goal": w.town,
        "third": w.speaker(),
        "habit": w.table("""
short / long
is afraid of thunder / {pet.he} hides when there's thunder
bites / careful, {pet.he} [likes fingers|bites]
needs a pill every evening / don't forget the pill every evening
only sleeps with the radio on / {pet.he} won't sleep without the radio
"""),
    },
    """
lead: a) {b}, [you like animals, don't you?|do you like animals?]
    b) [Depends|Yes]... [why|what's going on]?
lead: a) [Small|Big] favour, {b}: it's about {pet}, my {animal.short}.
    b) [Aww|Oh], [how is {pet.he}|is {pet.he} well]?
lead: b) So you're [off|going] to {goal}? And [your {animal.short}|who takes care of {pet}]?
    a) That's [the problem|just it].
when: a) I'm in {goal} from {from_} to {to} and someone has to [look after|feed] my {animal.short} {pet}.
    b) [I see|Ah].
when: a) {pet} the {animal.short} can't come [along|with me] to {goal}. It's from {from_} till {to}.
    b) [Of course not|Poor {pet}].
yes: b) I can [do it|come by every day].
    a) [Really|Yay]? Thank you! {animal.food} is enough.
yes: a) Could you [take {pet.him}|have {pet.him} at yours]?
    b) [With pleasure|I'd love to]! [What does {pet.he} eat|Food]?
    a) {animal.food}.
no!yes: b) I'm [allergic|away too], sorry. But {third} [loves animals|has time], I'll [ask|call] {third.him}.
    a) [Oh, thank you|That would be great].
    b) {third} says yes!
    a) [Phew|Wonderful] :)
habit?: a) [One thing|By the way]: {habit.long}.
    b) [Good to know|Noted].
aside: b) {other} in {far_town} has {some_number} [hens|goldfish], all [called {friend}|with names].
    a) [Crazy|Haha].
aside: a) The pet hotel in {some_street} [costs {some_number} euros a night|is full until {some_month}].
    b) [What?|Too bad.]
close: a) I'll bring you [a present|cheese] from {goal}!
    b) [No need|Yes please] :)
summary: <yes: {b}><no: {third}> will look after {a}'s {animal.short} {pet} from {from_} to {to} while {a} is
    in {goal}.<habit: {pet} {habit.short}.>
summary: {a} is going to {goal} from {from_} to {to}, so <yes: {b}><no: {third}> will take care of {pet} the
    {animal.short}<no: , as {b} cannot>.<habit: {pet} {habit.short}.>
""",
    common=COMMON,
    passing=PASSING,
)

SHOPPING = scenario(
    "shopping",
    {
        "one": w.one_of("milk", "eggs", "bread", "rice", "butter", "onions", "cheese", "flour"),
        "two": w.one_of("apples", "tomatoes", "soap", "tea", "honey", "light bulbs", "lemons", "batteries"),
        "three": w.one_of(
            "candles", "chocolate", "cat food", "mustard", "a newspaper", "toothpaste", "mushrooms"
        ),
        "guest": w.speaker(),
        "dish": w.one_of("pancakes", "soup", "lasagne", "curry", "fish pie", "dumplings", "risotto"),
        "swap": w.one_of("pizza", "noodles", "omelettes", "stew", "tacos", "baked potatoes"),
        "time": w.clock(17, 21),
        "shop": w.street,
    },
    """
lead: a) I'm at the [shop|market] in {shop}, [do we need anything|what do we need]?
    b) [Good that you ask|Oh yes]!
lead: b) [Are you still in town|Where are you], {a}?
    a) At the [shop|market] in {shop}. [Need anything?|Why?]
list: b) [We need|Please get] {one} and {two}.
    a) [Okay|Got it].
list: b) {one}, please. And {two}.
    a) [Sure|Will do].
more?: b) And {three}[|, if they have it]!
    a) [Found it|In my basket].
more?: a) Do we have {three}?
    b) No, [please bring some|get some too].
guest: b) {guest} [is coming for dinner|eats with us] at {time}. I'm making {dish}.
    a) [Nice|Yum].
guest: a) What's for dinner?
    b) {dish}. And {guest} [is joining us|is coming] at {time}.
other?: a) {guest} [can't stand|is allergic to] {dish}, remember?
    b) [Oh no, right|I forgot]. Then {swap}.
other?: b) [Wait|Hmm], the oven is [dead|still dirty]... I'll make {swap} instead.
    a) [Also good|I prefer that anyway].
aside: a) I just met {other} at the till, {other.he} has {some_number} [bottles|cabbages] in the trolley.
    b) [A party?|Haha, why?]
aside: a) They've moved the bakery to {far_town}.
    b) [Oh no|Since when]?
close: b) [Hurry|Don't be late]!
    a) [On my way|Home in a bit] :)
summary: {a} will buy {one}<more: , {two} and {three}><!more: and {two}> in {shop}. {b} is cooking <other:
    {swap} instead of {dish}><!other: {dish}> for {guest}, who comes at {time}.
summary: {b} asks {a} to bring {one}<more: , {two} and {three}><!more: and {two}>. {guest} is coming at {time}
    and {b} will make <other: {swap}, not {dish}><!other: {dish}>.
""",
    common=COMMON,
    passing=PASSING,
)

SCENARIOS: tuple[Scenario, ...] = (SALE, REPAIR, PETS, SHOPPING)

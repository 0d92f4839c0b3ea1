"""Scenarios of the synthetic corpus: dialogues in which something is planned, often in two attempts."""

from __future__ import annotations

from precis.data.synthetic import words as w
from precis.data.synthetic.grammar import Scenario, scenario

COMMON = {
    "a": w.speaker(),
    "b": w.speaker(),
    "c": w.speaker(),
}
"""The speakers; only the first two speak in most dialogues."""

PASSING = {
    "other": w.speaker(),
    "friend": w.speaker(),
    "far_town": w.town,
    "some_street": w.street,
    "some_day": w.weekday(),
    "some_month": w.month(),
    "some_number": w.number(12, 60),
    "some_year": w.year(1990, 2022),
}
"""Slots of the digressions, drawn afresh for each."""

ASIDES = scenario(
    "digressions",
    {},
    """
aside: a) By the way, did you see [the photos {other} posted|what {other} wrote] from {far_town}?
    b) [Yes, so funny!|Not yet, are they good?|No, I was too busy.]
aside: b) Sorry, the cat just walked across my [keyboard|phone].
    a) [Ha, say hi to her.|Haha, again?]
aside: a) It's so [cold|hot] in here. My neighbour {other} [switched off the heating|keeps every window shut].
    b) [Poor you.|Same here.]
aside: b) I'm on the bus to {some_street}, so I may [lose signal|drop off] for a minute.
    a) No problem.
aside: a) {friend} turned {some_number} last {some_day}, can you believe it?
    b) [Wow, time flies!|No way!]
aside: b) I [dreamt|was dreaming] about our trip to {far_town} last night.
    a) [Those were the days.|That was back in {some_year}, wasn't it?]
aside: a) [Are you still|Have you finished] watching that series {friend} told us about?
    b) [I gave up after {some_number} episodes.|Only the first season, no spoilers please!]
aside: b) {other} says hi, by the way. [We had lunch on {some_day}.|I ran into {other.him} in {some_street}.]
    a) [Oh, how is {other.he}?|How is {other.he} doing?]
    b) [Fine, I think.|Still looking for a job in {far_town}.]
aside: a) I [slept|only slept] [badly|four hours], {other} upstairs had a party until [three|dawn].
    b) [Ugh.|Again? You should talk to them.]
aside: b) Did you know {friend} is moving to {far_town} in {some_month}?
    a) [Really? I had no idea.|Yes, {friend.he} told me on {some_day}.]
aside: a) [Hang on, the doorbell.|One second, {other} is calling.]
    b) [Take your time.|Sure.]
    a) [Back.|Okay, I'm back, it was only the post.]
""",
    common=COMMON,
    passing=PASSING,
).frames["aside"]
"""Digressions that fit any chat between friends."""

PICK_UP = scenario(
    "pick-up",
    {
        "place": w.one_of(
            "at the station",
            "at the airport",
            "at the bus stop on {road}",
            "outside the {road} clinic",
            "at the ferry port",
            "at the {road} library",
            "outside the gym in {road}",
        ),
        "road": w.street,
        "time": w.clock(7, 21),
        "final": w.clock(7, 21),
        "thing": w.one_of(
            "two big suitcases",
            "a bike",
            "a box of books",
            "a cello",
            "a wedding cake",
            "a tent",
            "the dog",
            "three rolled-up carpets",
            "a Christmas tree",
            "an old lamp",
        ),
    },
    """
lead: a) [Hi|Hey] {b}! [Could|Can] you [pick me up|collect me|come and get me] {place} tomorrow?
    b) [Sure|Of course]! [When?|What time?]
lead: b) [Hi|Hey|Hello] {a}, [all packed?|are you on your way home?]
    a) [Yes!|Nearly done.] I'll be {place} tomorrow. Any chance [of a lift|you could fetch me]?
    b) [Sure|No problem]. When?
lead: a) {b}, [I need a favour.|are you there? It's about tomorrow.]
    b) [What's up?|What is it?|Tell me.]
    a) [My car is at the garage|There are no taxis], so I need someone to [meet me|pick me up] {place}.
    b) I can do that. Tell me when.
plan: a) [At {time}|{time}], [if that's okay|please].
    b) [Okay|Fine], {time} it is.
plan: a) [Be there|Can you be there] at {time}?
    b) [That works|I can do that], {time}.
change?: a) [Wait|Oh no|Sorry], I [got that wrong|looked at the wrong day].
    b) What is it?
    a) [It's {final}, not {time}|I get there at {final}].
    b) [Good that you checked!|No worries, {final} then.|Even better for me.]
change?: b) [Hmm, hang on|Ah, wait]. I have [a meeting|the dentist] at {time}. [Is {final} okay too?|Could you
    wait until {final}?]
    a) [Sure|Yes], [I'll have a coffee|{final} is fine].
load?: a) I'll have {thing} with me, [just so you know|hope that's fine].
    b) [I'll bring the big car.|It'll fit, don't worry.|Seriously? Okay :D]
load?: b) [Much luggage?|Do you have a lot of stuff?]
    a) [Well, there is|Just] {thing}.
    b) [Haha, okay.|I'll make room.]
aside: b) My own car is [so old|from {some_year}], it [needs|takes] {some_number} seconds to start.
    a) [As long as it starts|I don't mind] :)
aside: a) Last time {other} forgot me and I [stood|waited] in the rain for {some_number} minutes.
    b) [I remember, lol.|That won't happen with me.]
close: a) You're the best!
    b) [See you!|I know ;)|You owe me a coffee.]
close: a) Thanks a lot, {b}!
    b) [Any time.|See you tomorrow!]
summary: {b} will pick up {a} {place} tomorrow at <change: {final} instead of {time}><!change: {time}>.<load:
    {a} is bringing {thing}.>
summary: {a} needs a lift tomorrow, so {b} will meet {a.him} {place} at <change: {final}, not {time}><!change:
    {time}>.<load: {a} has {thing} with {a.him}.>
""",
    common=COMMON,
    passing=PASSING,
)

DINNER = scenario(
    "dinner",
    {
        "day": w.weekday(),
        "time": w.clock(18, 21),
        "late": w.clock(18, 21),
        "first": w.made_of("the ", w.RESTAURANT_STARTS, " ", w.RESTAURANT_ENDS),
        "final": w.made_of("the ", w.RESTAURANT_STARTS, " ", w.RESTAURANT_ENDS),
        "what": w.one_of("dinner", "a drink", "pizza", "curry", "noodles"),
    },
    """
lead: a) [Hey|Hi] {b}, [do you fancy|how about|shall we have] {what} [this week|on {day}]?
    b) [I'd love that|Great idea|Yes please]!
lead: b) [We haven't met in ages|I miss our chats], {a}. [Let's go out|We should eat out] [soon|this week].
    a) [True!|So true.] [How about|What about] {what}?
    b) [Perfect|Count me in]!
when: a) [Is {day} good for you|Does {day} suit you|Would {day} work]?
    b) [Yes, any time|Sure], [I'm free all day|nothing planned].
when: b) I'm [busy|away] on {some_day}, but {day} [is fine|works for me].
    a) {day} then.
where: a) [Let's try|I'd like to try|Shall we go to] {first}[| in {some_street}].
    b) [Sounds good|Heard good things about it].
where: b) [Where|And where]?
    a) {first}[| maybe], [they have a new cook|it's close to both of us].
swap?: b) [Oh wait|Hm], {first} is [closed for repairs|fully booked|too loud for me].
    a) [What a pity|Oh]. [Then|What about] {final}?
    b) [Even better|Yes], {final}.
swap?: a) [Bad news|I just checked], {first} has no [free tables|table left].
    b) [Then let's take|We could go to] {final} instead.
    a) [Good idea|Fine with me]!
hour: a) [I'll book a table for {time}.|Table at {time}, okay?]
    b) [Great|Lovely|Super], {time}.
guest?: b) [Can|Could] I bring {c}? {c.he} [is visiting me|is in town].
    a) [Of course|Sure, the more the better]!
aside: b) Last time at {far_town} I [waited {some_number} minutes for a soup|found a hair in my soup].
    a) [Yuck.|Haha, unlucky.]
aside: a) {friend} says the best food is in {far_town}, but that's [too far|an hour by car].
    b) [Another time.|{friend} always says that.]
close: a) [Can't wait|Looking forward to it]!
    b) [Me too|Same] :)
summary: {a} and {b} will have {what} at <swap: {final} instead of {first}><!swap: {first}> on {day} at
    {time}.<guest: {b} is bringing {c}.>
summary: {a} is booking a table at <swap: {final}><!swap: {first}> for {day} at {time} to have {what} with
    {b}<guest: and {c}>.
""",
    common=COMMON,
    passing=PASSING,
)

MEETING = scenario(
    "work meeting",
    {
        "topic": w.one_of(
            "the budget",
            "the new website",
            "the {client} contract",
            "the training week",
            "the sales figures",
            "the office move",
            "the {client} complaint",
            "the summer party",
            "the safety rules",
            "the new printer",
        ),
        "client": w.company("Foods", "Bank", "Textiles", "Motors", "Hotels"),
        "day": w.workday(),
        "later": w.workday(),
        "time": w.clock(8, 17),
        "room": w.figure(2, 480),
    },
    """
lead: a) [Good morning|Hello] {b}, [we need to talk about|could we discuss] {topic}?
    b) [Yes, it's urgent|Of course|Certainly].
lead: b) {a}, [the boss is asking|I keep getting emails] about {topic}.
    a) [Then let's meet|We should sit down together].
    b) [Agreed|Good idea].
lead: a) Hi {b}, did you [read|get] my [note|message]?
    b) [Not yet, sorry|I've been in calls all day]. What was it about?
    a) {topic}. [I'd like a meeting|We need to meet].
when: a) [Would|Does] {day} at {time} [suit you|work]?
    b) [Let me check|One moment]... [yes|that should work].
when: b) [I have time|I'm free] on {day} at {time}.
    a) [Excellent|Perfect].
shift?: b) [Oh, I forgot|Ah no], I'm [at the dentist|in {far_town}] on {day}. [Can we say|How about] {later},
    same time?
    a) [No problem|Sure], {later} it is.
shift?: a) [Sorry to be a pain|Small problem], {other} has [taken every room|called me in] on {day}.
    b) [Then {later}|Let's make it {later}], same time.
    a) [Thank you|Done].
where: b) Which room?
    a) {room}, [the one with the screen|next to the kitchen].
where: a) I've [booked|reserved] room {room}.
    b) [Noted|Good, it's quiet there].
task?: a) [Can|Could] you [bring|print] the [numbers|charts]?
    b) [I'll prepare them tonight|Will do].
aside: b) [The coffee machine|The lift] is [broken|out of order] again, by the way.
    a) [I know, {other} has called someone.|For the third time since {some_day}!]
aside: a) {other} from [accounts|the {far_town} office] [resigned|is leaving], did you hear?
    b) [Since when?|Yes, after {some_number} years.]
close: b) [Anything else|Is that all]?
    a) [No, that's all|That's it], thanks.
summary: {a} and {b} will meet on <shift: {later} instead of {day}><!shift: {day}> at {time} in room {room} to
    discuss {topic}.<task: {b} will bring the figures.>
summary: The meeting of {a} and {b} about {topic} is on <shift: {later}, not {day},><!shift: {day}> at {time}
    in room {room}.<task: {b} will prepare the figures.>
""",
    common=COMMON,
    passing=PASSING,
)

MOVING = scenario(
    "moving house",
    {
        "street": w.street,
        "day": w.weekday(),
        "time": w.clock(7, 15),
        "object": w.one_of(
            "piano", "sofa", "wardrobe", "washing machine", "oak table", "fridge", "bookcase", "bed"
        ),
        "excuse": w.table("""
short / long
a bad back / my back [is killing me|is still bad]
an exam / I have an exam [that day|that morning]
a wedding / my [cousin|sister] is getting married that day
work / I have to work that day
"""),
        "loan": w.one_of("van", "trailer", "trolley", "toolbox", "drill"),
    },
    """
lead: a) [Big news|Guess what], {b}! I [got the flat|have found a flat|signed the contract] in {street}!
    b) [Congratulations|Wow, great]! When do you move?
lead: b) [How is the new place|Any luck with the flat], {a}?
    a) [I got it|It's mine], the one in {street}!
    b) [Nice|So happy for you]! When's the move?
when: a) On {day}, [starting at|from] {time}. I'm [looking for|short of] helpers...
    b) [Ah, I see where this is going|I thought so] :D
help: a) [Could|Can] you help me [carry|with] the {object}? [It won't fit in the lift.|It weighs a ton.]
    b) [Of course|Sure], [I'll be there|count on me].
no!help: a) [Could|Can] you help me [carry|with] the {object}? [It won't fit in the lift.|It weighs a ton.]
    b) [I'm so sorry|I wish I could], but {excuse.long}.
    a) [Oh no|Pity]!
    b) [But you can have|I can lend you] my {loan}, [if that helps|I don't need it].
    a) [That helps a lot|Oh yes please]!
aside: b) My last move, back in {some_year}, took {some_number} boxes and [three days|two broken lamps].
    a) [Don't scare me!|I have more than that already.]
aside: a) The landlord, {friend}, [wants|asked for] {some_number} euros just for the key.
    b) [That's cheeky|Is that even legal?]
close: a) There will be [pizza|soup and cake] [for everyone|afterwards].
    b) [Now you're talking|Yum].
summary: {a} is moving to {street} on {day} at {time}. <help: {b} will help to carry the {object}.><no: {b}
    cannot help because of {excuse.short} but will lend {a.him} a {loan}.>
summary: <help: {b} will help {a} move the {object} to {street} on {day} at {time}.><no: {b} cannot help {a}
    with the move to {street} on {day} at {time} because of {excuse.short} but offers a {loan}.>
""",
    common=COMMON,
    passing=PASSING,
)

TRIP = scenario(
    "trip",
    {
        "goal": w.town,
        "day": w.weekday(),
        "leave": w.clock(6, 12),
        "nights": w.number(2, 9),
        "means": w.one_of("by train", "by bus", "by bike", "by car", "by ferry"),
        "better": w.one_of("by train", "by bus", "by bike", "by car", "by ferry"),
        "why": w.table("""
short / long
it is cheaper / I'd like to [save money|spend less]
it is greener / we should [think of|do something for] the climate
it is more fun / that sounds a bit [boring|dull]
of the view / we'd [see nothing|miss the view] that way
"""),
        "where": w.one_of(
            "a campsite", "a hostel", "a small hotel", "a cabin", "{host}'s flat", "{host}'s farm"
        ),
        "host": w.speaker(),
    },
    """
lead: a) {b}, [are we still going|is it still on, our trip] to {goal}?
    b) [Of course!|Yes, can't wait!]
lead: b) I [need a break|can't look at this desk any longer]...
    a) [Same|Me too]. [Come to {goal} with me|Let's go to {goal}]!
    b) [Seriously?|Oh!] [I'm in|Yes]!
lead: a) [Look|Guess] where I've [always wanted to go|been offered a bed]: {goal}!
    b) [Nice|Never been there], [let's do it|take me with you]!
when: a) [We could leave|Leave] on {day} at {leave}?
    b) [Fine|Okay], [I'm an early bird anyway|I'll set an alarm].
when: b) When do we [start|set off]?
    a) {day}, {leave}.
how: a) And [we go|I thought we'd go] {means}, [right?|okay?]
    b) [Why not.|Okay with me.]
how: b) {means}, I guess?
    a) [Yes|I think so].
change?: b) [Wait|Hmm], {why.long}. [Let's go|We could go] {better}.
    a) [You're right|True], {better} [it is|then].
change?: a) [You know what?|Thinking about it,] {why.long}.
    b) [Then let's go|Okay, we could go] {better}.
    a) [Good thinking|Okay], {better}.
stay: b) Where do we sleep?
    a) {where}, for {nights} nights.
stay: a) We can stay at {where} for {nights} nights.
    b) [Perfect|Lovely].
aside: a) Last time in {far_town} it rained for {some_number} hours.
    b) [And we forgot the umbrella|You were in such a mood] :D
aside: b) {other} took a picture of a {some_number} kilo pumpkin there in {some_month}.
    a) [What?|Ha, show me.]
close: a) Don't forget your [passport|swimsuit|charger]!
    b) [I won't|Yes, mum].
summary: {a} and {b} are going to {goal} on {day} at {leave}, <change: {better} instead of {means} because
    {why.short}><!change: {means}>. They will stay at {where} for {nights} nights.
summary: {a} and {b} will leave for {goal} on {day} at {leave} and travel <change: {better} rather than
    {means}><!change: {means}>. They are staying {nights} nights at {where}.
""",
    common=COMMON,
    passing=PASSING,
)

SCENARIOS: tuple[Scenario, ...] = (PICK_UP, DINNER, MEETING, MOVING, TRIP)

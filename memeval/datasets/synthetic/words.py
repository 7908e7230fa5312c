"""The words that synthetic conversations are made of: invented people, places and things, and the
chat between the facts.

The words here decide what is generated: a change needs a new `synthetic.GENERATOR`.
"""

from __future__ import annotations

SPEAKERS = tuple(
    (
        "Mira Tobias Ingrid Casper Salome Henrik Odile Bastian Nerys Ludwig Tamsin Emeric Yara "
        "Quentin Solveig Anselm"
    ).split()
)
PEOPLE = tuple(
    (
        "Petra Jonas Wilma Edgar Fenna Marek Beatrix Olaf Rosalind Stellan Agnes Florian Hedda "
        "Ivo Katinka Leopold Malin Norbert Ottilie "
        "Piers Runa Sander Thea Ulrich Viola Wendel Xenia Yorick Zelda Aldo Brigitta Cosimo Dagny "
        "Egon Friederike Gunnar Hilda Ismael "
        "Jarla Klaus Lavinia Magnus Nadia Orson Perdita Rufus Sibyl Torsten Ursula Valentin"
    ).split()
)

LAST_NAMES = tuple(
    (
        "Quillfeather Brackenridge Holloway Stormcroft Thistlewood Marchbanks Ravensdale Wetherby "
        "Goldfinch Larkspur Underhill "
        "Winterbourne Ashgrove Copperfield Dunmore Fairweather Greystone Hawkmoor Ironside "
        "Kestrelman Lockhart Mossgrove Oakenshaw"
    ).split()
)
FIRST_NAMES = tuple(
    (
        "Edda Corwin Maribel Lucian Theodora Barnaby Celeste Dorian Evander Giselle Horatio "
        "Isolde Jasper Lorelei Mortimer Octavia "
        "Percival Rowena Sylvester Tabitha Ulysses Verity Wystan Zephyrine"
    ).split()
)
PLACE_STARTS = tuple(
    (
        "Harlow Eastbrook Winter Copper Raven Thorn Silver Marsh Kings Alder Briar Stone Fox Lark "
        "Moor Swan Holly Elm Wolf Ash"
    ).split()
)
PLACE_ENDS = tuple("mere ford wick haven dale stead combe minster bury worth gate field".split())
ADJECTIVES = tuple(
    (
        "Amber Velvet Crimson Hollow Gilded Quiet Frosty Wandering Copper Marbled Dusky Radiant "
        "Crooked Silken Thundering Misty "
        "Emerald Rusty Lunar Scarlet Gentle Spiral Ivory Restless"
    ).split()
)
NOUNS = tuple(
    (
        "Fern Lantern Otter Compass Kettle Sparrow Anchor Thimble Orchard Falcon Saddle Puddle "
        "Beacon Walnut Lobster Quarry "
        "Teapot Badger Violin Glacier Button Heron Mitten Pebble"
    ).split()
)

PERSON, PLACE, THING, NUMBER = "person", "place", "thing", "number"
ATTRIBUTES: tuple[tuple[str, str], ...] = (
    ("dentist", PERSON),
    ("landlord", PERSON),
    ("piano teacher", PERSON),
    ("vet", PERSON),
    ("godmother", PERSON),
    ("accountant", PERSON),
    ("workshop", PLACE),
    ("summer cottage", PLACE),
    ("allotment", PLACE),
    ("choir rehearsal", PLACE),
    ("storage room", PLACE),
    ("new office", PLACE),
    ("boat name", THING),
    ("team name", THING),
    ("band name", THING),
    ("wifi password", THING),
    ("quiz nickname", THING),
    ("favourite tea", THING),
    ("locker code", NUMBER),
    ("alarm code", NUMBER),
    ("membership number", NUMBER),
    ("parking space", NUMBER),
    ("raffle ticket", NUMBER),
    ("bus line", NUMBER),
)
"""What a person has, and the kind of its value."""

EVENTS: tuple[tuple[str, str], ...] = (
    ("repair", "repaired the greenhouse roof"),
    ("sell", "sold the old caravan"),
    ("adopt", "adopted a three-legged cat"),
    ("finish", "finished the mosaic table"),
    ("break", "broke the antique mirror"),
    ("win", "won the chess tournament"),
    ("plant", "planted a quince tree"),
    ("lose", "lost the house keys"),
    ("paint", "painted the garden shed"),
    ("visit", "visited the clock museum"),
    ("quit", "quit the rowing club"),
    ("bake", "baked a wedding cake"),
    ("pass", "passed the sailing exam"),
    ("rent", "rented a cargo bike"),
    ("build", "built a bat box"),
    ("catch", "caught an enormous pike"),
    ("miss", "missed the night train"),
    ("frame", "framed the family tree"),
    ("record", "recorded a radio play"),
    ("join", "joined the fire brigade"),
)
"""What somebody did: the verb as in a question, and the whole as in a statement."""

AGO: tuple[tuple[int, str], ...] = (
    (0, "today"),
    (1, "yesterday"),
    (2, "two days ago"),
    (3, "three days ago"),
    (7, "a week ago"),
)
COLLECTIONS = tuple(
    "stamp beetle postcard marble teaspoon fossil thimble banner snowglobe clockwork".split()
)
PIECES = tuple("blue tiny Portuguese cracked shiny rare heavy Victorian striped wooden".split())
PROJECTS = (
    "kitchen renovation",
    "puppet theatre",
    "cellar shelf",
    "school fair",
    "canoe repair",
    "tree house",
    "street party",
    "model railway",
)
RACES = (
    "Lantern Run",
    "Harbour Loop",
    "Midwinter Dash",
    "Orchard Relay",
    "Bridge Marathon",
    "Sunrise Trail",
)
COUNTED = ("zero", "one", "two", "three", "four", "five", "six")

NEWS, SURE, HEARD, CORRECTED = FORMS = (
    "There is news: {} {} {} {} now.",
    "I am sure that {} {} {} {}.",
    "I heard that {} {} {} {}.",
    "I have to correct myself: {} {} {} {}.",
)
"""Sentences for an attribute that changes or is disputed: whose, which, the verb, the value."""
OPENINGS = (
    "",
    "By the way, ",
    "Before I forget: ",
    "I found out that ",
    "You may want to write this down: ",
    "It turns out that ",
    "As it happens, ",
)

FOODS = tuple(
    (
        "mushroom soup,lentil stew,plum dumplings,garlic bread,pear tart,pancakes,fish pie,noodle "
        "salad,roasted pumpkin,cheese toast,"
        "rice pudding,bean chili,potato gratin,apple crumble,cucumber sandwiches,onion cake"
    ).split(",")
)
SPOTS = tuple(
    (
        "the market,the harbour,the library,the swimming pool,the park,the bakery,the station,the "
        "cinema,the rose garden,the town hall,"
        "the flea market,the lake,the hardware store,the corner café,the tram depot,the castle hill"
    ).split(",")
)
HOBBIES = tuple(
    (
        "knitting,bouldering,bird watching,calligraphy,table tennis,pottery,juggling,chess "
        "puzzles,watercolours,folk dancing,origami,"
        "gardening,night photography,crosswords,sourdough,beekeeping"
    ).split(",")
)
MOODS = tuple(
    (
        "tired,cheerful,confused,proud,restless,calm,curious,grumpy,relieved,"
        "hopeful,distracted,wide awake,silly,patient"
    ).split(",")
)
SKIES = tuple("rain,fog,drizzle,sunshine,hail,wind,snow,thunder,heat,frost".split(","))
TIMES = tuple(
    (
        "this morning,over lunch,after work,late in the evening,on the way home,"
        "before breakfast,during the break,at the weekend"
    ).split(",")
)
OBJECTS = tuple(
    (
        "umbrella,bicycle pump,scarf,notebook,toaster,lamp,backpack,radio,mug,ladder,puzzle,"
        "armchair,curtain,suitcase,rain coat,"
        "coffee grinder,hammock,map"
    ).split(",")
)
TALK = (
    "How was your day?",
    "I felt {mood} {time}.",
    "There was so much {sky} {time} that I stayed inside.",
    "We had {food} and then more {food}.",
    "I walked past {spot} and thought of you.",
    "{name} says hello and asks how you are.",
    "{name} waved at me near {spot} {time}.",
    "I spent an hour on {hobby} and forgot the time.",
    "Do you still have my {object}?",
    "The {object} fell off the shelf again, nothing serious.",
    "{name} and I talked about {hobby} for ages.",
    "I can't decide between {food} and {food} for dinner.",
    "They say that {sky} is coming, so take an {object} or a {object}.",
    "I am reading about {hobby}, and it makes me {mood}.",
    "Would you come along to {spot} next time?",
    "{name} got into {hobby} lately, who would have thought.",
    "My {object} squeaks whenever there is {sky}.",
    "I saw a {object} just like yours at {spot}.",
    "That reminds me of the time when we got stuck at {spot}.",
    "Honestly, {hobby} is harder than it looks.",
    "{name} cooked {food} for everyone, it was lovely.",
    "I queued at {spot} for far too long {time}.",
    "We laughed so much about the {object} that {name} left on the tram.",
    "No news from my side, just {sky} and {food}.",
    "I think {name} was {mood} because of the {sky}.",
    "Sounds good to me.",
    "That makes sense, I would have done the same.",
    "Oh, I know that feeling, I was {mood} all week.",
    "Let me know when you are at {spot}.",
    "I tidied the whole flat {time} and found a {object}.",
    "The neighbours practise {hobby} at night, can you imagine?",
    "Maybe we should try {food} at {spot} with {name}.",
    "I dreamt of a {object} floating over {spot}.",
    "{name} promised to bring {food}, let us see.",
    "What a day: first the {sky}, then no {food} left.",
    "I keep telling {name} that {hobby} needs patience.",
    "Thanks for listening, I feel less {mood} now.",
    "There is a new poster about {hobby} at {spot}.",
    "I swapped my {object} for a {object}, a fair deal.",
    "It is funny how {hobby} and {sky} go together.",
)
"""Chat without any fact that is asked about."""

MENTIONS = (
    "I still have to ask {name} about the {attribute}.",
    "{name} never tells me anything about the {attribute}, typical.",
    "Remind me to talk with {name} about that {attribute} matter.",
    "{name} complained about the {attribute} again, but I did not catch why.",
)
"""Chat that has a question's words and not its answer."""

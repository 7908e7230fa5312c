"""Patterns of English refusals, in text that `memeval.metrics.refusal` has made plain.

Plain text is in lower case, without markup, with `not` for `n't` and `is` for `'s` when it means
that. Every pattern is applied to a clause of bounded length.
"""

import re


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_ADVERBS = (
    r"(?:(?:\w+ly|yet|ever|really|even|in fact|at all|been|being|any|currently|quite|so far|given"
    r"|made) ){0,3}"
)
_THING = (
    r"(?:information|info|mentions?|records?|evidence|proof|details?|data|indications?|answers?"
    r"|memor(?:y|ies)|context|references?|clues?|knowledge|traces?|specifics|documentation|notes?"
    r"|recollections?|hints?|discussions?|explanations?|statements?|idea|clue|clarity)"
)
_SOURCE_NOUN = (
    r"(?:conversations?|context|text|dialogues?|dialogs?|transcripts?|chats?|history|histories"
    r"|memor(?:y|ies)|messages?|passages?|excerpts?|information|records?|logs?|sessions?|notes?"
    r"|documents?|database|knowledge|data|sources?|snippets?|discussions?|exchanges?|summar(?:y"
    r"|ies)"
    r"|interactions?|facts|material|details|results|story|input|dataset|facts)"
)
_DETERMINER = (
    r"(?:the|this|that|these|those|any|all|our|your|my|their|what|either|both|past|previous|prior"
    r"|earlier|given|provided|available|above|retrieved|supplied|shared|stored|relevant|recorded"
    r"|current|chat|conversation|dialogue|memory|session|message|existing|entire|of|you|i|have|has"
    r"|been|was|is|speaker(?:s|s')?|user|user's|\w+'s?|and|known|extracted|history|context|text)"
)
SOURCE = rf"(?:{_DETERMINER} ){{0,6}}{_SOURCE_NOUN}\b"
_SAYS = (
    r"(?:mention|specif|stat(?:e|ing|ed)|provid|indicat|say|tell|contain|includ|discuss|reveal"
    r"|clarif|detail|address|describ|disclos|giv(?:e|ing)|refer|record|show|cover|explain|hold"
    r"|suggest|offer|note|list|identif|document|have|talk|make|confirm|answer|allow|support)\w*"
)
_ASKED = r"(?:whether|what|which|when|where|who|whom|whose|why|how|if|exactly)"
_FIND = (
    r"(?:answer|find|determine|tell|say|locate|recall|provide|help|assist|give|identify|confirm"
    r"|know|infer|see|remember|conclude|verify|deduce|establish|pinpoint|calculate|specify|offer"
    r"|state|ascertain|retrieve|access|respond|be (?:sure|certain)|accurately|definitively"
    r"|conclusively)"
)
_STATED = (
    r"(?:mentioned|specified|stated|disclosed|indicated|discussed|documented|clarified|addressed"
    r"|referenced|elaborated(?: on)?|noted|detailed|brought up|touched (?:up)?on|referred to)"
)
_KNOWN = (
    r"(?:given|provided|known|clear|available|recorded|revealed|shared|described|listed|included"
    r"|told|evident|explained|defined|applicable|determined|determinable|obvious|certain|found"
    r"|answerable|identified|covered|present|contained|apparent|supplied|named|explicit|told"
    r"|in|part of|something)"
)
_END = r"(?= *$| *,)"
_VERY_END = r"(?= *$)"
_WITHIN = (
    r"(?:in|by|from|within|on|through|via|across|during|based on|according to|using|given|with"
    rf"|throughout) (?:\w+ ){{0,3}}?{SOURCE}"
)
_TOLD_TAIL = (
    rf"(?:{_END}| (?:anywhere|at all|here|yet|so far|explicitly|directly|specifically|either|or"
    rf"|and|nor|at this time|as such|by)\b| {_WITHIN}| (?:about )?{_ASKED}\b)"
)
_WHOSE = r"(?:exact|specific|precise|particular|actual|full)"
_ASKED_FOR = (
    r"(?:information|data|evidence|info|answer|answers|date|dates|time|name|names|age|number"
    r"|amount|reason|reasons"
    r"|details?|location|place|year|month|day|duration|cost|price|type|kind|title|identity|cause"
    r"|frequency|color|colour|size|brand|model|birthday|occupation|job|specifics|context|outcome)"
)
_SUBJECT = (
    r"(?:it|this|that|these|those|they|the answer|the answer to (?:this|that|the|your) question)"
)
_WE = r"(?:i|we|one|you|the assistant)"
_NEVER = r"(?:(?:do|does|did|has|have|had) (?:not|never)|never)"
_PERSON = r"the (?:user|speakers?|author|narrator|assistant|person|participants?|client|customer)"
_UNABLE = (
    r"(?:can not|could not|am unable to|are unable to|was unable to|were unable to|is unable to"
    r"|am not able to|are not able to|was not able to|will not be able to|would not be able to"
    r"|can neither|do not know how to)"
)

DECISIVE = _any_of(
    # The answerer does not know.
    rf"^(?:i|we) (?:\w+ ){{0,2}}(?:do|did) not {_ADVERBS}know\b(?! (?:how|what) (?:to|i|we)\b)",
    r"^(?:do|did) not know(?! how to)\b(?= *$| *,| the | what | who | when | where | which | if )",
    r"^(?:do not|can not) (?:recall|remember|say|tell|determine|answer)\b",
    rf"^{_WE} (?:\w+ ){{0,2}}(?:do|did) not {_ADVERBS}(?:have|see|find|hold|possess) "
    rf"(?:[\w'-]+ ){{0,5}}(?:{_THING}|access|way)\b",
    r"^(?:i|we) do not have (?:that|this|it|an answer|the answer|any|anything|enough)\b",
    r"^(?:i|we) (?:do|did) not (?:recall|remember)\b",
    r"^i do not (?:think|believe) [^,]{0,80}\b(?:mention|discuss|told|shared|said|specif|stated"
    r"|talked)\w*",
    r"^(?:i|we) (?:am|are|was|were|have been) (?:not|never) (?:been )?(?:told|given|informed"
    r"|provided)\b",
    rf"^(?:i |we )?(?:lack|lacks|lacking) (?!of\b)(?:\w+ ){{0,3}}{_THING}\b",
    r"^(?:this|that|it) (?:is|was) not something\b",
    rf"^(?:i|we) {_UNABLE} {_ADVERBS}{_FIND}\b(?! no\b)",
    r"^(?:i|we) (?:am|are) (?:\w+ )?(?:not (?:\w+ )?(?:sure|certain|aware)|unsure|uncertain"
    r"|unaware)\b"
    r"(?!-| (?:how|what) (?:to|i|we)\b| (?:my|our|i will ever)\b)",
    rf"^(?:i|we) (?:\w+ )?(?:have|had|found|find|see|saw) no (?:[\w'-]+ ){{0,3}}(?:{_THING}|way)\b",
    r"^(?:i|we) have not (?:been (?:told|given|provided|informed)|(?:any|enough))\b",
    r"^(?:not sure|unsure|no idea|no clue|not certain|do not know|dunno|idk|beats me)\b(?= *$"
    r"| " + _ASKED + r"\b)",
    # There is not enough information to answer.
    rf"\b(?:not enough|not sufficient|insufficient|not adequate|inadequate|too little) "
    rf"(?:[\w'-]+ ){{0,2}}{_THING}\b",
    rf"\bnot have (?:enough|sufficient|adequate|the necessary|the required) "
    rf"(?:\w+ ){{0,2}}{_THING}",
    rf"\b{_THING} (?:\w+ )?(?:is|are|was) (?:not (?:\w+ )?(?:enough|sufficient)|insufficient)"
    rf"(?={_END}| to (?:\w+ ){{0,2}}{_FIND}\b)",
    rf"\bno (?:[\w'-]+ ){{0,3}}{_THING} [^,]{{0,80}}\bto (?:\w+ ){{0,2}}(?:answer|determine"
    rf"|provide|calculate)\b",
    r"\bneed more (?:information|context|details?|data)\b",
    r"\b(?:more|additional|further) (?:information|context|details?|data) "
    r"(?:is|are|would be|will be) (?:needed|required|necessary)\b",
    r"\b(?:would|will|i|we) need (?:more|additional|further) (?:information|context|details?"
    r"|data)\b",
    # It can't be answered.
    r"\b(?:can not|could not|can neither) be (?:\w+ly )?(?:determined|answered|inferred|established"
    r"|known|identified|ascertained|verified|confirmed|deduced|derived|concluded|calculated|said"
    r"|specified|found (?:in|from)|pinpointed|provided)\b",
    r"\b(?:not possible|impossible|no way|hard|difficult|not easy|not feasible) (?:for me )?to "
    r"(?:\w+ly )?(?:say|tell|determine|know|answer|infer|identify|establish|pinpoint|ascertain"
    r"|conclude|confirm|calculate|provide|give)\b",
    rf"^(?:is |am |are )?(?:unable|not able) to (?:\w+ly )?{_FIND}\b",
    r"\b(?:question|query) (?:is|was) (?:unanswerable|not answerable)\b",
    rf"^(?:can not|could not) (?:\w+ly )?(?:be )?{_FIND}\b",
)
"""Refusals that also count after other text: they speak of the answer as a whole."""

PLAIN = _any_of(
    # There is no information.
    rf"^(?:there (?:is|was|are|were|exists?|seems? to be|appears? to be|has been|have been) )?"
    rf"(?:also )?(?:no|not any|not a|not an|not much|little to no|never any) "
    rf"(?:[\w'/-]+ ){{0,3}}{_THING}"
    rf"(?:{_END}| (?:is|was|are|were|of|about|on|for|to|in|regarding|concerning|available|provided"
    rf"|given|found|that|as|related|relating|suggests?|indicates?|from|whether|which|here|supports?"
    rf"|linking|exists?|within|or|and|specified|mentioned|stated|recorded|at all|what|who|where|how"
    rf"|showing|pointing|indicating|suggesting|confirming|mentioning|with respect|between)\b)",
    rf"^(?:there (?:is|was|are|were|has been|have been) )?(?:no|none|nothing|not any) "
    rf"(?:[^,]{{0,150}} )?(?:is |are |was |were |has been |have been )?{_ADVERBS}{_STATED}"
    rf"(?:{_END}| (?:in|from|about|for|on|regarding|that|here|yet|so far|before|during|within|at"
    rf"|with|between|after|as|by)\b)",
    rf"^(?:there (?:is|was|are|were) )?(?:no|nothing) (?:[\w'-]+ ){{0,2}}(?:{_ASKED_FOR}"
    rf"|about[^,]{{0,80}}) "
    rf"(?:is |are |was |were |has been )?{_ADVERBS}(?:{_KNOWN}|said){_VERY_END}",
    rf"^(?:there (?:is|was|are|were) )?(?:no|nothing|not any) [^,]{{0,150}}{_WITHIN}",
    r"^(?:no|none) (?:specific |explicit )?(?:\w+ )?(?:mentioned|specified|stated|given|provided"
    r"|found|listed|recorded|known|available|identified)" + _END,
    r"^(?:no|nothing) (?:explicit|specific|direct|clear)(?: \w+){1,3} (?:found|given|provided)"
    + _END,
    rf"^none (?:of [^,]{{1,80}} )?(?:\w+ly )?{_SAYS}",
    r"^none (?:explicitly |specifically |directly )?(?:mentioned|specified|stated|given|listed)\b",
    r"^(?:there (?:is|was) )?nothing (?:that|which|about|regarding|on (?:this|that)|to "
    r"(?:indicate|suggest|show))\b",
    rf"^there (?:do|does|did) not (?:appear|seem) to be (?:any|an?|enough) (?:[\w'/-]+ ){{0,3}}"
    rf"(?:{_THING}|{_STATED})\b",
    rf"^none of {SOURCE} (?:is|are|was|were|have|has|do|does|did|mention|contain|relate|refer"
    rf"|address)\w*\b",
    rf"^(?:the |any |this |that |such |relevant |requested )*(?:{_ASKED_FOR}"
    rf"|{_THING})\b[^,]{{0,100}} (?:is|are|was|were) (?:missing|absent|lacking){_TOLD_TAIL}",
    rf"^(?:[^,]{{1,120}} (?:is|are|was|were) )?not (?:\w+ )?(?:in|part of|within) {SOURCE}",
    # It is not mentioned.
    rf"^(?:{_SUBJECT} )?(?:(?:is|was|were|are|has|have|had|does|do|remains?|seems?|appears?) )?"
    rf"(?:still )?"
    rf"(?:not|never) {_ADVERBS}(?:{_STATED}|{_KNOWN}|sure|certain){_TOLD_TAIL}",
    rf"^(?!because |since |as |(?:\S+ ){{1,3}}(?:lives?|went|bought|visited|likes?|has|had|is"
    rf"|was|works?|started|moved)\b[^,]* and )"
    rf"[^,]{{1,200}} (?:is|was|are|were|has|have|had|be) (?:not|never) "
    rf"{_ADVERBS}{_STATED}(?!(?: \w+){{0,2}} (?:to|at) ){_TOLD_TAIL}",
    rf"^(?:the|any|specific|details|information|her|his|their)\b[^.]{{1,200}} (?:is|was|are"
    rf"|were) not "
    rf"{_ADVERBS}{_STATED}{_TOLD_TAIL}",
    rf"^(?:there (?:is|was) )?(?:the|a|an|her|his|their|its|your|my|\w+'s?|any|specific|exact"
    rf"|such)?"
    rf" ?(?:[\w'-]+ ){{0,3}}{_ASKED_FOR}\b[^,]{{0,120}} (?:is|was|are|were|has been|have been)"
    rf" (?:not|never) {_ADVERBS}(?:{_KNOWN}){_TOLD_TAIL}",
    rf"^[^,]{{1,200}} (?:is|was|are|were) (?:not|never) {_ADVERBS}(?:{_KNOWN}) {_WITHIN}",
    rf"^(?:(?:the|any|this|that|such|relevant|requested|specific|exact|more) ){{0,2}}"
    rf"(?:\w+ )?{_ASKED_FOR} "
    rf"(?:not {_ADVERBS}(?:{_STATED}|{_KNOWN})|unknown|unclear|unspecified|unavailable"
    rf"|undisclosed){_TOLD_TAIL}",
    rf"^{_ASKED} [^,]{{1,200}} (?:is|was|are|were|remains?) (?:\w+ly )?(?:unknown|unclear"
    rf"|unspecified|uncertain"
    rf"|not (?:\w+ly )?(?:{_KNOWN}|{_STATED})){_TOLD_TAIL}",
    r"^it (?:does|did) not (?:\w+ ){0,2}(?:say|tell|specify|mention|state|give|indicate)\b",
    # It is unknown.
    rf"^(?:{_SUBJECT} )?(?:(?:is|was|are|remains?|seems?|still) ){{0,2}}(?:an? )?(?:unknown|unclear"
    rf"|unspecified|undetermined|undeterminable|unanswerable|undisclosed|indeterminate|unstated"
    rf"|unavailable|unmentioned|not applicable|n/?a|n\.a\.?|uncertain|inconclusive|ambiguous)"
    rf"(?:{_END}| {_WITHIN}| {_ASKED}\b| at this time| given| as (?:it|there|the)\b| due to\b)",
    rf"^(?:(?:the|her|his|their|its|\w+'s) )[^,]{{1,120}} (?:is|are|was|were|remains?) (?:\w+ly )?"
    rf"(?:unknown|unclear|unspecified|undetermined|undisclosed|unstated|unmentioned|unavailable)"
    rf"(?:{_END}| {_WITHIN})",
    # The source does not say.
    rf"(?:^|\b(?:the|these|this|any|our|your|my|that|provided|available|\w+'s?) )"
    rf"(?:(?:\w+|user's|and) ){{0,4}}?{_SOURCE_NOUN}(?: (?:between|with|of|about|from|in|i"
    rf"|you) [^,]{{1,60}}?)?"
    rf"(?: (?:provided|given|available|here|above|i have|shared|retrieved|itself))*"
    rf"(?: [^,]{{1,80}} (?:and|or))? (?:only |also |simply |just )?"
    rf"(?:{_NEVER} (?:\w+ ){{0,2}}?{_SAYS}"
    rf"|(?:lacks?|omits?|fails? to|is silent|are silent|says? nothing|mentions? nothing"
    rf"|(?:makes?|gives?|contains?|provides?|offers?|has|have|includes?|holds?) (?:no|nothing"
    rf"|neither))\b)",
    rf"^(?:neither|nobody|no one|nothing|no (?:\w+ ){{0,2}}{_SOURCE_NOUN})\b[^,]{{0,100}}? "
    rf"(?:mention|specif|indicat|discuss|clarif|state[sd]?\b|provides?\b|suggests?\b)\w*"
    rf"(?!(?: \w+){{0,3}} to (?:him|her|them|anyone))",
    # A person has not said it.
    rf"^(?:you|{_PERSON}|user|speakers?) {_NEVER} {_ADVERBS}(?:mention|specif|discuss|indicat"
    rf"|describ"
    rf"|provid|giv|stat|shar|t[eo]l[ld]|disclos|reveal|say|said|talk|includ|record|explain"
    rf"|clarif)\w*\b"
    rf"(?!(?: [\w']+){{0,6}} to (?:him|her|them|his|their|your|anyone|the)\b)",
    rf"^(?:they|he|she|it|[^\W\d]+(?:'s \w+)?(?: (?:and|or) [^\W\d]+)?) {_NEVER} {_ADVERBS}"
    rf"(?:mention|specif|indicat|describ|discuss this|discuss that|discuss it)\w*\b"
    rf"(?!(?: [\w']+){{0,6}} to (?:him|her|them|his|their|my|anyone|the)\b)",
    rf"^(?:(?:they|he|she|[^\W\d]+) ){_NEVER} {_ADVERBS}"
    rf"(?:provid|giv|stat|shar)\w* (?:[\w']+ ){{0,2}}(?:information|details?|{_ASKED}"
    rf"|explicit\w*|specific\w*)\b",
    r"^(?:do|does|did|has|have) (?:not|never) (?:\w+ly )?(?:say|mention|specify|state|indicate"
    r"|tell|mentioned|specified)\b",
)
"""Refusals that count if an answer begins with them, or consists of them."""

YES_OR_NO = re.compile(
    r"(?:yes|no|nope|yeah|probably|likely|unlikely|possibly|perhaps)(?: not)?(?:[,.]|$)"
)
"""Beginning of an answer to a yes-or-no question: the rest gives its grounds."""

OPENER = re.compile(
    r"(?:(?:i am |i'm )?(?:very |so |truly )?sorry(?: about that)?|unfortunately|"
    r"(?:i am )?afraid(?: that)?|regrettably"
    r"|(?:my )?apologies|i apologi[sz]e|but|so|and|however|well|hmm+|therefore|thus|hence"
    r"|overall|ultimately|in (?:short|summary|conclusion|fact)"
    r"|to (?:conclude|summari[sz]e|be honest)|honestly|sadly|currently|as (?:far as i|an ai"
    r"|a language|of)[^,]*|still|also|again|finally|actually|at this time"
    r"|i (?:must|can|will|have to|would|need to|should|could)(?: only)? (?:conclude|say|answer"
    r"|admit|note|respond)(?: that)?|i (?:think|believe|conclude|found|find|see)(?: that)?"
    r"|(?:it (?:seems|appears|looks)(?: like| as if| that)?)|it is (?:important to note"
    r"|worth noting|clear|evident)(?: that)?|please note(?: that)?|note that"
    r"|(?:the|my) (?:\w+ )?answer (?:to (?:the|this|your) question )?is(?: that)?(?= )|ok"
    r"(?:ay)?|which means(?: that)?"
    r"|after (?:reviewing|checking|searching|looking)[^,]*(?=,)|having (?:reviewed"
    r"|checked)[^,]*(?=,)|upon review[^,]*(?=,)"
    r"|(?:based|going|judging|relying) (?:only |solely |purely )?(?:on|by|off)[^,]*(?=,)|"
    r"(?:according to|from|in|within|given|looking at|across|among|throughout|for|regarding"
    r"|as for|with)\b[^,]*(?=,))"
    r"(?:[, ]+|$)"
)
"""Words that may precede a refusal."""

OPENER_WITHOUT_COMMA = re.compile(
    rf"(?:based (?:only |solely )?on|according to|from|in|within|given|across) "
    rf"(?:only )?{SOURCE}(?: (?:provided|given|available|above|i have))? (?=(?:there|it|i|we|no"
    rf"|the)\b)"
)

SUBORDINATE = re.compile(
    r"(?:while|although|though|even though|since|as|because|despite|given that|if)\b[^,]*,? ?"
)
"""A clause before the main one, up to its comma."""

CONTRAST = re.compile(
    r"[,;]? ?\b(?:but|however|although|though|yet|nevertheless|nonetheless)\b,? |(?:^|[,;] )"
    r"(?:that said|still)\b,? |, (?:so|then|and so|which (?:suggests|implies|means))\b,? "
)
"""Words after which an answer may still follow."""

PARTIAL = re.compile(
    rf"\b(?:{_WHOSE} (?!answers?\b|information\b|details\b|numerical\b)\w+"
    r"|exactly|precisely|definitively|(?:determine|know|say|tell|sure|certain|clear) (?:if"
    r"|whether))\b"
)
"""A refusal only to go into more detail than the rest of the answer."""

OTHER_MATTERS = re.compile(
    rf"^(?:(?:none|nothing|no one|nobody|nowhere)$|(?:we|i) (?:do )?(?:know|see|find|have) "
    rf"|only |instead|(?:there|here) (?:is|are|was|were) (?:a |an |some |only )?(?:mention"
    rf"|reference|information|discussion)s?"
    rf"|(?:it|they|he|she|you|i|we|the \w+|[^\W\d]+|{SOURCE}) (?:do |does |did |has |have "
    rf"|also |only |instead |simply |just |merely ){{0,2}}"
    rf"(?:mention|discuss|talk|refer|note|focus|indicate|cover|contain|include|show|speak|say"
    rf"|state|describe|provide|share|suggest)(?:s|es|ed|red|d|ing)?\b"
    rf"|{SOURCE} (?:is|are|only)\b|(?:if|please|let|feel|would|could|can|you (?:may|might|can"
    rf"|could)|perhaps you)\b|the question\b|this (?:question|may|might|does not)\b|(?:that"
    rf"|this) (?:is|was) (?:all|not))"
)
"""Phrases next to a refusal that say what the source does mention; they are not an answer."""

NEUTRAL = re.compile(
    r"(?:(?:here(?: is|'s)|below is) .*|to (?:answer|determine|find) .*|let (?:me|us) .*|"
    r"(?:step|session) \d+.*|if .*|please .*|(?:feel free|let me know|would you|could you"
    r"|can you|do you|may i|is there) .*"
    r"|(?:i would|i will|i can|i am) (?:be )?(?:happy|glad|able|here)\b.*|(?:the |my |short "
    r"|final |correct |brief |direct )*(?:answer|response|reply|result|conclusion|note"
    r"|explanation|reasoning|summary|a|reason)(?: to (?:the|this|that|your|my) [^,]*)?(?: is)?"
    r"|(?:i am |i'm )?(?:so |very )?sorry(?: about that| for .*)?|(?:my )?apologies"
    r"(?: for [^,]*)?|unfortunately|however|thank.*|hello|hi|sure|okay|ok)$"
)
"""Sentences that neither answer nor refuse."""

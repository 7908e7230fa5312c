"""Refusals in languages other than English: a few fixed phrases of each.

Each pattern is matched from the start of a clause. Most of those that speak of the source, or are
in Chinese, Japanese or Korean, allow other words before the phrase.
"""

import re

_ZH_TELL = (
    "(?:提到|提及|提過|提过|说明|說明|说到|說到|指出|指明|表明|显示|顯示|给出|給出|提供|记录"
    "|記錄|记载|記載|透露"
    "|描述|讨论|討論|涉及|谈到|談到|谈及|談及|包含|明确|明確|说|說|写|寫|告诉|告訴|交代|列出"
    "|回答|体现|體現|具体|具體)"
)
_ZH_THING = (
    "(?:信息|資訊|资讯|訊息|消息|记录|紀錄|記錄|资料|資料|证据|證據|内容"
    "|內容|线索|線索|依据|依據|答案|数据|數據|细节|細節|记忆|記憶|说明|說明"
    "|描述|提示|记载|記載)"
)
_ZH_SOURCE = (
    "(?:对话|對話|聊天|上下文|文中|文本|记忆|記憶|记录|記錄|紀錄|资料|資料"
    "|内容|內容|信息|資訊|材料|文章|会话|會話|原文|历史|歷史|片段|背景)"
)
_ZH_OPENER = (
    "(?:(?:很|非常)?(?:抱歉|对不起|對不起|遗憾|遺憾)|不好意思|(?:根据|根據|从|從|在|依据|依據|基于"
    "|基於|就|按照|由)[^,。]{0,30}?(?:来看|來看|看|中|里|裡|内|內|上|可知|,)"
    "|(?:我们|我們|我|答案是|答案为|答案|回答|目前|但是|但|因此|所以|不过|不過|暂时|暫時|现有"
    "|現有|恐怕|似乎|好像|也|还|還|并|並|这个问题|這個問題|该问题|該問題|这|這|此|其中"
    "|[,:、 ]))*"
)

_CHINESE = re.compile(
    rf"{_ZH_OPENER}(?:"
    r"不(?:知道|清楚|确定|確定|太清楚|太确定|太確定|得而知|详|詳|明)(?![^,。]{0,12}(?:怎么|怎麼"
    r"|如何)(?:做|游|开|開|用))"
    r"|(?:无从|無從)(?:得知|知晓|知曉|判断|判斷|回答)|(?:无法|無法|不能|没法|沒法|难以|難以)"
    r"(?:从[^,。]{0,20}|從[^,。]{0,20}|根据[^,。]{0,20}|根據[^,。]{0,20}|准确|準確"
    r"|直接)?"
    r"(?:确定|確定|回答|判断|判斷|得知|知道|提供|确认|確認|得出|推断|推斷|给出|給出|获知|獲知"
    r"|确知|了解|作答|找到|断定|斷定|取得|获得|獲得|获取|獲取|查到|查詢|查询|推测|說明|说明)"
    rf"|(?:没有|沒有|没|沒|未|并未|並未|并没有|並沒有|无|無|缺乏|缺少|尚未|从未|從未|尚无"
    rf"|尚無)[^,。]{{0,30}}?(?:{_ZH_TELL}|{_ZH_THING})"
    rf"|[^,。]{{0,40}}?{_ZH_SOURCE}[^,。]{{0,12}}?(?:没有|沒有|没|沒|未|并未|並未|并没有|並沒有|无"
    rf"|無|不|从未|從未)[^,。]{{0,20}}?(?:{_ZH_TELL}|{_ZH_THING})"
    rf"|[^,。]{{1,30}}?(?:没有|沒有|未|并未|並未|并没有|並沒有)(?:被"
    rf"|在[^,。]{{1,20}})?(?:明确|明確|具体|具體|直接)?(?:提到|提及|说明|說明|指出|给出|給出"
    rf"|提供|记载|記載|记录|記錄|明确|明確)"
    r"|(?:未知|未提及|未提到|未说明|未說明|未指定|未明确|未明確|无相关|無相關|没有提|沒有提"
    r"|信息不足|資訊不足|资讯不足|信息不够|資料不足|资料不足|条件不足|没提到|沒提到)(?:$"
    r"|[,。])"
    r"|[^,。]{0,20}?(?:信息|資訊|资讯|资料|資料|证据|證據|内容)(?:不足|不够|不夠|有限|不可用)"
    r"|[^,。]{1,20}?(?:是|仍|仍然|尚|还|還)(?:未知|不明|不详|不詳|不清楚|不得而知|不确定|不確定)"
    r"(?:的)?$"
    r"|[^,。]{0,30}?(?:无法|無法|不能)(?:被)?(?:确定|確定|得知|回答|判断|判斷|确认|確認|取得"
    r"|获得|獲得)"
    r")"
)
_JAPANESE = re.compile(
    r"[^。]{0,80}?(?:(?:わか|分か|判)り(?:ません|かねます)|(?:わか|分か)ら(?:ない|ず)|不明"
    r"(?:です|である|。|$)|不明確|存じ(?:ません|上げません)|知りません"
    r"|(?:情報|記載|記述|言及|記録|手がかり|根拠|証拠|データ|説明)(?:が|は|も"
    r"|については)?[^。]{0,10}?(?:ありません|ない|なし|見つかりません|見当たりません|不足"
    r"|含まれてい(?:ません|ない)|され(?:てい)?(?:ません|ない)|してい(?:ません|ない))"
    r"|(?:述べ|触れ|示さ|書か|記さ|明記さ|語ら|話さ|含ま|明らかにさ|特定さ|挙げ|記録さ|提供さ"
    r"|記載さ|言及さ)(?:ら)?れてい(?:ません|ない)"
    r"|(?:答え|判断|特定|確認|回答|断定|お答え)(?:することが|することは|は|が)?(?:でき(?:ません"
    r"|ない|かねます)|られ(?:ません|ない)))"
)
_KOREAN = re.compile(
    r"[^.]{0,60}?(?:알 수 없|모르겠|모릅니다|언급되지 않|언급(?:이|은)? 없|정보(?:가|는)? "
    r"(?:없|부족)|명시되(?:어 있)?지 않|확인할 수 없|답변할 수 없|대답할 수 없|기록(?:이|은)? 없"
    r"|나와 있지 않)"
)
_GERMAN = re.compile(
    r"(?:(?:leider|es tut mir leid|tut mir leid|entschuldigung|nein|aber|laut [^,]{0,60},"
    r"|basierend auf [^,]{0,80},|[,. ])+ ?)?(?:"
    r"(?:das |dies )?(?:weiß|weiss) (?:ich|man|es)?\b.{0,20}nicht|ich (?:weiß"
    r"|weiss)\b.{0,30}\bnicht|wir wissen\b.{0,20}nicht|keine ahnung"
    r"|.{0,80}(?:geht|lässt sich|lassen sich|ist|sind|wird|wurde|werden|wurden"
    r"|kann)\b.{0,90}nicht\b.{0,40}(?:hervor|erwähnt|bekannt|angegeben|ersichtlich|genannt"
    r"|bestimm\w*|beantwort\w*|feststell\w*|ermitteln|klar|sagen|ableiten|spezifiziert"
    r"|beschrieben|verfügbar|enthalten|angeführt|festgehalten|besprochen|dokumentiert"
    r"|beschreiben|entnehmen|gesagt|erläutert|besprochen)"
    r"|.{0,80}nicht (?:hervor|erwähnt|bekannt|angegeben|ersichtlich|genannt|bestimmbar"
    r"|spezifiziert|verfügbar|beantwortbar)"
    r"|(?:es |dazu |darüber |hierzu |im .{0,40} |in .{0,40} |ich )?(?:gibt es |gibt |liegen "
    r"|finden sich |findet sich |stehen |habe |sind |ist |enthält )?.{0,40}(?:keine?|keinerlei"
    r"|nicht genügend|nicht genug|unzureichende) (?:\w+ )?(?:information\w*|angabe\w*"
    r"|hinweis\w*|erwähnung\w*|daten|auskunft|details|einzelheiten|aufzeichnung\w*|beleg\w*)\b"
    r"|(?:das |es )?(?:ist )?unbekannt$|.{0,80}(?:erwähnt|nennt|sagt|gibt|verrät|enthält"
    r"|erwähnen|nennen)\b.{0,60}\bnicht\b.{0,20}$"
    r"|ich kann\b.{0,60}(?:nicht|leider)\b.{0,40}(?:beantwort|sagen|bestimm|feststell|finden"
    r"|ermitteln)\w*)(?!.*\b(?:aber|jedoch|allerdings)\b)"
)
_FRENCH = re.compile(
    r"(?:(?:désolée?|je suis désolée?|malheureusement|mais|d'après [^,]{0,60},"
    r"|selon [^,]{0,60},|sur la base [^,]{0,60},|[,. ])+ ?)?(?:"
    r"(?:je|on|nous) (?:ne |n')(?:le |l')?(?:sais|sait|savons|dispose|ai|a|avons|peux|peut"
    r"|pouvons|connais|connaît|trouve|suis)\b.{0,12}\b(?:pas|aucune?)\b(?! (?:nager|conduire"
    r"|cuisiner|faim|soif|peur|envie|besoin))"
    r"|je (?:sais|peux) pas\b|aucune? (?:information|mention|indication|donnée|détail|réponse"
    r"|trace|preuve|précision)s?\b|pas (?:d'|assez d'|suffisamment d'|de )(?:information"
    r"|mention|indication|précision|détail|réponse|donnée)s?"
    r"|il n'y a (?:pas|aucune?) .{0,40}(?:information|mention|indication|donnée|détail|preuve"
    r"|précision)s?"
    r"|.{0,100}(?:ne |n')(?:\w+ )?(?:est|sont|a|ont|était)? ?(?:pas |jamais )(?:été )?"
    r"(?:\w+ment )?(?:mentionnée?s?|précisée?s?|indiquée?s?|spécifiée?s?|connue?s?|disponibles?"
    r"|claire?s?|évoquée?s?|fournie?s?|abordée?s?)"
    r"|(?:non|pas) (?:mentionnée?|précisée?|indiquée?|spécifiée?|connue?|disponible)s?\b"
    r"|.{0,100}\bne (?:mentionne|précise|dit|indique|donne|contient|fournit|permet|parle"
    r"|spécifie|révèle)(?:nt)? (?:pas|aucune?|rien)\b"
    r"|.{0,40}(?:il est )?impossible (?:de|à) (?:dire|déterminer|savoir|répondre)|(?:c'est "
    r"|information )?inconnue?$|informations? insuffisantes?)"
    r"(?!.*\b(?:mais|cependant|toutefois)\b)"
)
_SPANISH = re.compile(
    r"(?:(?:lo siento|lamentablemente|desafortunadamente|pero|según [^,]{0,60},"
    r"|de acuerdo con [^,]{0,60},|en (?:la|el|las|los) [^,]{0,60},|[,. ¡])+ ?)?(?:"
    r"no (?:lo |la )?(?:sé|sabemos|tengo|dispongo|tenemos|recuerdo|puedo|podemos)\b(?! "
    r"(?:hambre|frío|calor|miedo|nadar|tiempo|dinero|hijos))"
    r"|.{0,100}\bno (?:se |está |están |es |fue |ha sido |queda )(?:\w+mente )?(?:menciona"
    r"|especifica|indica|sabe|dice|proporciona|detalla|conoce|puede|mencionad|especificad|clar"
    r"|indicad|posible (?:determinar|saber|responder|decir)|disponible|señala|aclara|da )\w*"
    r"|no hay (?:\w+ )?(?:información|informacion|mención|datos|evidencia|indicios|detalles"
    r"|registro|referencia|constancia|suficiente)\w*|(?:ninguna|sin|falta) (?:información"
    r"|mención|datos|informacion)|información insuficiente"
    r"|.{0,100}\bno (?:menciona|especifica|indica|dice|contiene|proporciona|incluye|aclara"
    r"|revela|detalla|ofrece)n?\b|(?:es )?imposible (?:saber|determinar|decir|responder)|"
    r"(?:es )?desconocid[oa]s?$|no (?:mencionad|especificad|disponible|indicad|consta)\w*)"
    r"(?!.*\b(?:pero|sin embargo)\b)"
)
_PORTUGUESE_ITALIAN = re.compile(
    r"(?:(?:desculpe|infelizmente|purtroppo|mi dispiace|lamento|mas|ma|[,. ])+ ?)?(?:(?:eu )?não "
    r"(?:sei|é mencionad|foi mencionad|há informaç|há menç|está claro|é possível (?:determinar"
    r"|saber)|tenho (?:informaç|dados))\w*"
    r"|(?:io )?non (?:lo so|so\b|è (?:menzionat|specificat|indicat|chiar|not|possibile (?:dire"
    r"|determinare|sapere))|ci sono informazioni|viene (?:menzionat|specificat|indicat)|ho "
    r"(?:informazioni|abbastanza))\w*"
    r"|nessuna (?:informazione|menzione)|nenhuma (?:informação|menção)|.{0,80}\b(?:não|non) "
    r"(?:menciona|especifica|indica|fornece|menziona|specifica|fornisce|dice|diz)\w*)"
    r"(?!.*(?:, mas|, ma|porém|però|tuttavia)\b)"
)

_RUSSIAN = re.compile(
    # The place comes at most once: in a loop of openers, repeated words would take forever.
    r"(?:(?:к сожалению|извините|простите|но|[,. ])+ )?(?:в [^,.]{3,40}?,? (?:к сожалению,? )?)?"
    r"(?:я (?:этого )?)?(?:не знаю\b(?! как\b)|неизвестно\b|не могу (?:ответить|сказать"
    r"|определить)|(?:об этом |это |этого )?не (?:упоминается|упоминалось|указан[оаы]?\b|сказано"
    r"|говорится)|(?:нет|недостаточно) (?:\w+ )?(?:информации|данных|сведений)|информации нет"
    r"|невозможно (?:определить|ответить|сказать|установить))(?!.*, но )"
)
_DUTCH = re.compile(
    r"(?:(?:helaas|sorry|het spijt me|maar|[,. ])+ ?)?(?:"
    r"(?:dat |dit )?(?:weet ik|ik weet)(?: het| dat)? niet\b|geen idee\b|onbekend$"
    r"|.{0,60}\b(?:is|wordt|werd|zijn|worden) (?:\w+ )?niet (?:vermeld|genoemd|bekend|duidelijk"
    r"|gespecificeerd|besproken)|niet (?:vermeld|genoemd|bekend)$"
    r"|(?:er (?:is|staat|wordt) )?(?:geen|onvoldoende) (?:informatie|vermelding|gegevens)\b)"
    r"(?!.*\bmaar\b)"
)
_POLISH = re.compile(
    r"(?:(?:niestety|przepraszam|ale|[,. ])+ )?(?:w [^,.]{3,40}?,? (?:niestety,? )?)?(?:ja )?"
    r"(?:nie wiem\b(?! jak\b)|(?:nie ma|brak) (?:\w+ )?(?:informacji|danych|wzmianki)|nieznan[yae]$"
    r"|nie (?:podano|wspomniano|określono)|nie (?:można|da się) (?:\w+ )?(?:określić|ustalić"
    r"|odpowiedzieć|stwierdzić))(?!.*, ale )"
)
_TURKISH = re.compile(
    r"(?!.*\b(?:ama|ancak|fakat)\b)(?:.{0,60}\b)?(?:belirtilmemiş|belirtilmedi|belirtilmiyor"
    r"|bahsedilmiyor|bahsedilmemiş|bilinmiyor|(?<!yüzme )bilmiyorum|bilgi (?:yok|bulunmuyor"
    r"|mevcut değil))\w*$"
)
_ARABIC = re.compile(
    r"(?:(?:عذرا|عذراً|آسف|للأسف|[،,. ])+ ?)?(?!.*(?:لكن|ولكن))(?:أنا )?(?:لا (?:أعرف|أعلم|أدري)"
    r"|غير (?:معروف|مذكور|محدد)|لم (?:يتم )?(?:يذكر|ذكر|تحديد)|لا (?:توجد|تتوفر) (?:أي )?معلومات)"
)
_HINDI = re.compile(
    r"(?!.*(?:लेकिन|परन्तु|मगर))(?:मुझे )?(?:(?:यह |इसका )?(?:नहीं पता|पता नहीं|मालूम नहीं|नहीं मालूम)"
    r"|[^।]{0,60}(?:जानकारी|उल्लेख) [^।]{0,12}नहीं|अज्ञात)"
)

PATTERNS = (
    *(_CHINESE, _JAPANESE, _KOREAN, _GERMAN, _FRENCH, _SPANISH, _PORTUGUESE_ITALIAN),
    *(_RUSSIAN, _DUTCH, _POLISH, _TURKISH, _ARABIC, _HINDI),
)


def refuses_in_another_language(clause: str) -> bool:
    """Whether a clause, in lower case and without markup, refuses in one of these languages."""
    return any(pattern.match(clause) for pattern in PATTERNS)
